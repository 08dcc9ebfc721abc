/**
 * Detects dead connections that were never closed, because a machine or a network is gone.
 *
 * ioredis can do that with a timer of its own. But that timer also expires if this process was suspended, and ioredis then drops a healthy
 * connection before its replies have been read. So silence is counted in turns (platform/clock/turns.ts), the time in which this process
 * could read. This adds no cost to a command.
 */
import type { Redis } from "ioredis";
import { TURN_MS, turns } from "../../../../platform/clock/turns.ts";

/** A connection is closed if nothing arrives on it for this many command timeouts while replies are expected. */
const COMMAND_TIMEOUTS = 2;

/** Closes each connection of a client that is silent for too long, from now on. @param commandTimeoutMs in ms */
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
