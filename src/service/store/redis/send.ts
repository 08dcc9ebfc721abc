/**
 * Sends commands, and limits how long a reply is awaited. The deadline is counted in turns (platform/clock/turns.ts): if the process was stopped
 * or busy, that time counts as one turn, and the replies that arrived in the meantime are read before a command times out. One timer
 * serves all commands, because a timer for each would cost more.
 */
import { type Cluster, Command, Redis } from "ioredis";
import { TURN_MS, turns } from "../../../platform/clock/turns.ts";

type Client = Redis | Cluster;

/** An argument of a command. A list stands for its elements. */
type Argument = string | number | Buffer | readonly (string | number | Buffer)[];

export type Sender = {
  /** Strings in the reply are Buffers. */
  send(to: Client, name: string, args: readonly Argument[]): Promise<unknown>;
  sendCommand(to: Client, command: Command): Promise<unknown>;
  close(): void;
};

/** When this many bytes (some eight refreshes) are gathered, they are written at once, so that Redis can begin to execute them. */
const MAX_GATHERED_BYTES = 2_560;

/** @param timeoutMs how long a reply is awaited, in ms. The wait may be one turn (50 ms) longer */
export function createSender(timeoutMs: number): Sender {
  /** `turn` has the commands of this turn that have no reply yet. `before` has those of each earlier turn. */
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
      // A command is removed at once: keeping thousands of them until their turn ends would burden the garbage collector.
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
 * Holds back writes until the events of this turn have been handled, so that the commands of one turn share a few writes: a system call
 * costs a tenth of a refresh. Connections to the nodes of a cluster write each command at once.
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
