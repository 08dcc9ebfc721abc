/**
 * How commands go out, and how long an answer is waited for.
 *
 * The deadline is counted in turns of a timer, not on a clock: a process that was held up (starved of its processor, paused)
 * comes back to find every clock run out before it has read the answers that came in meanwhile. Such a pause is one turn.
 * And one timer for all costs a command nothing.
 */
import { Command, Redis } from "ioredis";
import type { Client } from "./connection.ts";

/** Lists among the arguments are flattened. */
export type Argument = string | number | Buffer | readonly (string | number | Buffer)[];

export type Sender = {
  /** Strings in the reply are Buffers. */
  send(to: Client, name: string, args: readonly Argument[]): Promise<unknown>;
  close(): void;
};

const TURNS = 5;

/** @param timeout how long an answer is waited for, ms; a turn more at most */
export function createSender(timeout: number): Sender {
  /** What has been sent in this turn and in those before. */
  const turns: Command[][] = Array.from({ length: TURNS + 1 }, () => []);
  const timer = setInterval(() => {
    const late = turns.pop() ?? [];
    turns.unshift([]);
    for (const command of late) if (!command.isSettled) command.reject(new Error(`no answer for ${timeout} ms`));
  }, timeout / TURNS).unref();
  return {
    send(to, name, args) {
      const command = new Command(name, [...args] as (string | number | Buffer)[]);
      turns[0]?.push(command);
      gather(to);
      to.sendCommand(command);
      return command.promise;
    },
    close: () => clearInterval(timer),
  };
}

/**
 * Holds back what is written on the connection until this turn's events have been handled, so that the commands of one turn
 * share a write: a system call each is a tenth of a refresh. The nodes of a cluster write each at once.
 */
function gather(client: Client): void {
  if (!(client instanceof Redis) || client.status !== "ready") return;
  const { stream } = client;
  if (stream.writableCorked > 0) return;
  stream.cork();
  setImmediate(() => stream.uncork());
}
