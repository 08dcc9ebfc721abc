/** A fast path for script calls. Writing them as one text takes 1.5 µs. ioredis, which flattens and copies arguments, takes 3.5 µs. */
import { Command } from "ioredis";
import type { Window } from "./clocks.ts";

export type Argument = string | number | Buffer;

/** How many arguments EVALSHA has besides those of the script: its name, the hash, the number of keys, and the 3 numbers of `Window`. */
const OWN_ARGUMENTS = 6;

/** An encoded EVALSHA command, for single nodes: in a cluster, ioredis needs the arguments to find the node of a command. */
class ScriptCall extends Command {
  readonly #encoded: string;

  constructor(encoded: string) {
    super("evalsha", []);
    this.#encoded = encoded;
  }

  override toWritable(): string {
    return this.#encoded;
  }
}

/** Returns the command, or undefined if it has an argument that is not text. */
export function scriptCall(
  sha: string,
  keys: readonly string[],
  args: readonly Argument[],
  { from, until, shift }: Window,
): Command | undefined {
  let encoded = `*${OWN_ARGUMENTS + keys.length + args.length}\r\n`;
  if (keys.length === 1) encoded += headOf(sha, keys[0] as string);
  else {
    encoded += encodeHead(sha, keys.length);
    for (const key of keys) encoded += encode(key);
  }
  for (const argument of args) {
    if (typeof argument === "object") return undefined;
    encoded += encode(argument);
  }
  return new ScriptCall(encoded + encode(from) + encode(until) + encode(shift));
}

/** The encoded beginnings of EVALSHA commands with one key, by the script's hash, then by the key. Scripts and hash tags are few. */
const heads = new Map<string, Map<string, string>>();

function headOf(sha: string, key: string): string {
  let byKey = heads.get(sha);
  if (byKey === undefined) {
    byKey = new Map();
    heads.set(sha, byKey);
  }
  let head = byKey.get(key);
  if (head === undefined) {
    head = encodeHead(sha, 1) + encode(key);
    byKey.set(key, head);
  }
  return head;
}

function encodeHead(sha: string, keys: number): string {
  return `$7\r\nevalsha\r\n${encode(sha)}${encode(keys)}`;
}

/** Encodes one argument (RESP, bulk string). */
function encode(argument: string | number): string {
  if (typeof argument === "string") return `$${Buffer.byteLength(argument)}\r\n${argument}\r\n`;
  const digits = String(argument);
  return `$${digits.length}\r\n${digits}\r\n`;
}
