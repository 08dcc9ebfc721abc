/**
 * How commands are sent, and how long a reply is awaited.
 *
 * The deadline is counted in turns (clock/turns.ts): a process that was held up has one of them, and has read the replies
 * that came in meanwhile. To be in a set costs a command less than a timer.
 */
import { Command, Redis } from "ioredis";
import { TURN_MS, turns } from "../../clock/turns.ts";
import type { Client } from "./connection.ts";

/** Lists among the arguments are flattened. */
type Argument = string | number | Buffer | readonly (string | number | Buffer)[];

export type Sender = {
  /** Strings in the reply are Buffers. */
  send(to: Client, name: string, args: readonly Argument[]): Promise<unknown>;
  sendCommand(to: Client, command: Command): Promise<unknown>;
  close(): void;
};

/** After this many bytes (some eight refreshes) they are written at once, so that Redis can begin in the meantime. */
const MAX_GATHERED_BYTES = 2_560;

/** @param timeoutMs how long a reply is awaited, at most one turn longer */
export function createSender(timeoutMs: number): Sender {
  /** The commands that were sent in this turn, and in each of the turns before, and have no reply yet. */
  let turn = new Set<Command>();
  const before = Array.from({ length: Math.ceil(timeoutMs / TURN_MS) }, () => new Set<Command>());
  const stop = turns.follow(() => {
    before.unshift(turn);
    turn = before.pop() ?? turn;
    for (const command of turn) command.reject(new Error(`no reply for ${timeoutMs} ms`));
    turn.clear();
  });
  const sendCommand = async (to: Client, command: Command) => {
    const begun = turn.add(command);
    gather(to);
    to.sendCommand(command);
    try {
      return await command.promise;
    } finally {
      // A command is removed at once. Thousands of them, kept until their turn is over, would keep the garbage collector busy.
      begun.delete(command);
    }
  };
  return {
    sendCommand,
    send: (to, name, args) => sendCommand(to, new Command(name, [...args] as (string | number | Buffer)[])),
    close: stop,
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
