/**
 * How commands are sent, and how long a reply is awaited.
 *
 * The deadline is counted in turns of a timer, not on a clock: a process that was held up (starved of its processor, paused)
 * comes back to find every clock run out before it has read the replies that came in meanwhile. Such a pause is one turn.
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

/** With so many bytes, some eight refreshes, Redis can begin while we go on. */
const MAX_GATHERED_BYTES = 2_560;

/** @param timeout how long a reply is awaited, ms; a turn more at most */
export function createSender(timeout: number): Sender {
  /** What is under way since this turn and since each of those before. */
  let turn = new Set<Command>();
  const before = Array.from({ length: TURNS }, () => new Set<Command>());
  const timer = setInterval(() => {
    const late = before.pop() ?? [];
    before.unshift(turn);
    turn = new Set();
    for (const command of late) command.reject(new Error(`no reply for ${timeout} ms`));
  }, timeout / TURNS).unref();
  return {
    async send(to, name, args) {
      const command = new Command(name, [...args] as (string | number | Buffer)[]);
      const begun = turn.add(command);
      gather(to);
      to.sendCommand(command);
      try {
        return await command.promise;
      } finally {
        // At once: thousands of them, kept until their turn is over, would keep the garbage collector busy.
        begun.delete(command);
      }
    },
    close: () => clearInterval(timer),
  };
}

/**
 * Holds back what is written on the connection until this turn's events have been handled, so that the commands of one turn
 * share a few writes: a system call each is a tenth of a refresh. The nodes of a cluster write each at once.
 */
function gather(client: Client): void {
  if (!(client instanceof Redis) || client.status !== "ready") return;
  const { stream } = client;
  if (stream.writableCorked === 0) {
    stream.cork();
    setImmediate(() => stream.uncork());
  } else if (stream.writableLength > MAX_GATHERED_BYTES) {
    stream.uncork();
    stream.cork();
  }
}
