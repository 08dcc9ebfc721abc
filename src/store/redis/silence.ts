/**
 * Notices connections that are dead without a word: half-open ones, behind which a machine or a network is gone.
 *
 * ioredis can do so by a timer of its own, which runs out while this process does not run, and then drops a healthy connection
 * before the replies on it have been read. So it is counted in turns, and costs a command nothing.
 */
import type { Redis } from "ioredis";
import { TURN_MS, turns } from "../../clock/turns.ts";

/** How many times the timeout of a command a connection may be silent while replies are due. */
const COMMAND_TIMEOUTS = 2;

/** Closes each connection of a client, from now on, that is silent for too long. @param commandTimeoutMs ms */
export function giveUpWhenSilent(client: Redis, commandTimeoutMs: number): void {
  const mostTurns = Math.ceil((COMMAND_TIMEOUTS * commandTimeoutMs) / TURN_MS);
  client.on("connect", () => {
    const { stream } = client;
    let { bytesRead } = stream;
    let silentTurns = 0;
    const stop = turns.follow(() => {
      const isDue = client.commandQueue.length > 0 && stream.bytesRead === bytesRead;
      silentTurns = isDue ? silentTurns + 1 : 0;
      bytesRead = stream.bytesRead;
      if (silentTurns > mostTurns) stream.destroy(new Error(`nothing was read for ${mostTurns * TURN_MS} ms`));
    });
    stream.once("close", stop);
  });
}
