/**
 * Writes and sends commands, and limits how long a reply is awaited. The deadline is counted in turns (platform/clock/turns.ts): if the
 * process was stopped or busy, that time counts as one turn, and the replies that arrived in the meantime are read before a command times
 * out. One timer serves all commands, because a timer for each would cost more.
 */
import { type Cluster, Command, Redis } from "ioredis";
import { TURN_MS, turns } from "../../../../platform/clock/turns.ts";
import type { Window } from "../partitions.ts";

type Client = Redis | Cluster;

/**
 * An argument of a script. Numbers are integers, and `toFixed` writes them: `String` puts each text that it makes into a cache, and
 * therefore into the old generation, where it stays until the next full garbage collection. The seven new numbers of a refresh, times and
 * words of nonces, were most of what made these collections necessary.
 */
export type Argument = string | number | Buffer;

export type CommandSender = {
  /** Strings in the reply are Buffers. */
  send(to: Client, name: string, args: readonly (Argument | readonly Argument[])[]): Promise<unknown>;
  sendCommand(to: Client, command: Command): Promise<unknown>;
  close(): void;
};

/** When this many bytes (some eight refreshes) are gathered, they are written at once, so that Redis can begin to execute them. */
const MAX_GATHERED_BYTES = 2_560;

/** @param timeoutMs how long a reply is awaited, in ms. The wait may be one turn (50 ms) longer */
export function createCommandSender(timeoutMs: number): CommandSender {
  /**
   * `turn` has the commands of this turn that have no reply yet, and holes for the others. `before` has those of each earlier turn.
   *
   * These are arrays and no sets: a set that changes all the time replaces its table again and again, and a table that has become old keeps
   * the next one with its commands alive until the next full garbage collection. That alone promoted half a kilobyte for each refresh.
   */
  let turn: (Command | undefined)[] = [];
  const before = Array.from({ length: Math.ceil(timeoutMs / TURN_MS) }, (): typeof turn => []);
  const stop = turns.follow(() => {
    before.unshift(turn);
    for (const command of before.pop() ?? []) command?.reject(new Error(`no reply for ${timeoutMs} ms`));
    turn = [];
  });
  const sendCommand = async (to: Client, command: Command) => {
    const begun = turn;
    const place = begun.push(command) - 1;
    gather(to);
    to.sendCommand(command);
    try {
      return await command.promise;
    } finally {
      // A command is removed at once: keeping thousands of them until their turn ends would burden the garbage collector.
      begun[place] = undefined;
    }
  };
  return {
    sendCommand,
    send: (to, name, args) => sendCommand(to, new Command(name, args.flat().map(withoutNumbers))),
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

/** How many arguments EVALSHA has besides those of the script: its name, the hash, the number of keys, and the 3 numbers of `Window`. */
const OWN_ARGUMENTS = 6;

/**
 * Returns an EVALSHA command, or undefined if it has an argument that is not text. Writing it as one text takes 1.5 µs. ioredis, which
 * flattens and copies arguments, takes 3.5 µs. It is for single nodes: in a cluster, ioredis needs the arguments to find the node of a
 * command.
 */
export function scriptCall(
  sha: string,
  keys: readonly string[],
  args: readonly Argument[],
  { from, until, shift }: Window,
): Command | undefined {
  const count = OWN_ARGUMENTS + keys.length + args.length;
  // A script's hash has 40 digits.
  let encoded = `*${count}\r\n$7\r\nevalsha\r\n$40\r\n${sha}\r\n${encode(keys.length)}`;
  for (const key of keys) encoded += encode(key);
  for (const argument of args) {
    if (typeof argument === "object") return undefined;
    encoded += encode(argument);
  }
  encoded += encode(from) + encode(until) + encode(shift);
  const command = new Command("evalsha", []);
  command.toWritable = () => encoded;
  return command;
}

function withoutNumbers(argument: Argument): string | Buffer {
  return typeof argument === "number" ? argument.toFixed(0) : argument;
}

/** Encodes one argument (RESP, bulk string). */
function encode(argument: string | number): string {
  if (typeof argument === "string") return `$${Buffer.byteLength(argument)}\r\n${argument}\r\n`;
  const digits = argument.toFixed(0);
  return `$${digits.length}\r\n${digits}\r\n`;
}
