/** Random changes of the tokens of the vectors: some break the signature, others are signed again. */
import type { Random } from "../connect-http-routes/roundtrip/random.ts";
import { CLAIMS, HEAD, raw, type VectorCase } from "./format.ts";
import { EDWARDS, MAIN, type Sign, type VectorKey } from "./keys.ts";

export const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
export const JSON_PIECES = [
  ...[
    '"',
    "\\",
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "0",
    "-",
    ".",
    "e",
    "E",
    "+",
    "1e999",
    "-0",
    "1.5",
    "null",
    "true",
    "false",
  ],
  ...[
    "\\u0000",
    "\\ud800",
    "\\udc00",
    "\\ud83d\\ude00",
    "\\/",
    "\\x",
    " ",
    "\n",
    "\t",
    "\f",
    "\u00a0",
    "\ufeff",
    "\u2028",
    "é",
    "🎉",
    "\0",
  ],
  ...[
    '"a":1,',
    '"a":1,"a":1,',
    '"sub":"root",',
    '"cnf":{},',
    '"nbf":0,',
    '"nbf":1e10,',
    '"exp":"1",',
    '"aud":[],',
    '"crit":[],',
    '"sv":1,',
    '"act":{"sub":"a"},',
    "[[[[",
    "]]]]",
  ],
];
export const VALUES = [
  null,
  true,
  false,
  0,
  -1,
  1.5,
  1e300,
  "",
  "x",
  [],
  {},
  [null],
  [""],
  1_800_000_000,
  1_800_000_600,
  1_799_999_999,
  2 ** 32 - 1,
  2 ** 32,
  { sub: "a" },
  { sub: "a", act: { sub: "" } },
];

/** Replaces, inserts or removes some characters. */
export function changeSome(random: Random, text: string, pieces: readonly string[]): string {
  const at = random.below(text.length + 1);
  const removed = random.chance(0.5) ? 1 : random.below(4);
  return text.slice(0, at) + (random.chance(0.8) ? random.pick(pieces) : "") + text.slice(at + removed);
}

export function createMutations(random: Random, sign: Sign, cases: readonly VectorCase[]) {
  const tokens = cases
    .filter(({ token, keys, feed, requests }) => token.length < 2000 && !keys && !feed && !requests)
    .map(({ token }) => token);

  const change = (text: string, pieces: readonly string[]) => changeSome(random, text, pieces);

  function changeText(): string {
    const pieces = [...ALPHABET, ".", "=", "+", "/", " ", "\n", "\0", "é", random.pick(tokens).slice(0, 40)];
    return change(random.pick(tokens), pieces);
  }

  /** Combines segments of different tokens. */
  function splice(): string {
    return [0, 1, 2].map((index) => random.pick(tokens).split(".")[index] ?? "").join(".");
  }

  /** Changes the claims or the header, as values or as JSON text, and signs the result. */
  function signAgain(): string {
    const key: VectorKey = random.pick([MAIN, MAIN, MAIN, EDWARDS]);
    const head = { ...HEAD, alg: key.alg, kid: key.kid };
    let [header, payload] = [JSON.stringify(head), JSON.stringify(CLAIMS)];
    if (random.chance(0.5)) {
      const name = random.pick([
        ...Object.keys(CLAIMS),
        "exp",
        "nbf",
        "cnf",
        "device_bound",
        "sv",
        "act",
        "x",
        "__proto__",
      ]);
      payload = JSON.stringify({ ...CLAIMS, [name]: random.pick(VALUES) });
    }
    const times = random.below(3);
    for (let count = 0; count < times; count++) payload = change(payload, JSON_PIECES);
    if (random.chance(0.15)) header = change(header, JSON_PIECES);
    const input = `${raw(header)}.${random.chance(0.05) ? raw(changeBytes(payload)) : raw(payload)}`;
    return `${input}.${sign(input, key)}`;
  }

  function changeBytes(text: string): Uint8Array {
    const bytes = Buffer.from(text);
    bytes[random.below(bytes.length)] = random.below(256);
    return bytes;
  }

  return (): string => {
    const kind = random.next();
    return kind < 0.2 ? changeText() : kind < 0.3 ? splice() : signAgain();
  };
}
