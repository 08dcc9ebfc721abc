/**
 * The scripts, one per verb of the port (lua/, each with its KEYS, ARGV and returns in a header).
 *
 * A script is its file behind the shared parts. The `#!lua` line makes Redis refuse all of them on a read-only
 * replica, where even an answer to a question could be out of date, and (but for those with allow-oom, which read
 * or make room) when memory is full, before anything is written.
 */
import { hash } from "node:crypto";
import { readFileSync } from "node:fs";

const VERBS = ["rotate", "create", "find", "list", "end", "end_owned", "end_all", "revocations"] as const;

export type Verb = (typeof VERBS)[number];

/** A script's text and its SHA-1, by which Redis knows it. */
export type Script = { readonly text: string; readonly sha: string };

export type Scripts = Readonly<Record<Verb, Script>>;

export function readLua(name: string): string {
  return readFileSync(new URL(`./lua/${name}.lua`, import.meta.url), "utf8");
}

/** @param clock Lua that defines `clock()`, the time in ms: that of the store, but for tests that move it */
export function loadScripts(clock: string = readLua("clock")): Scripts {
  const shared = clock + readLua("partition");
  const entries = VERBS.map((verb): [Verb, Script] => {
    const [shebang, body] = splitFirstLine(readLua(verb));
    const text = `${shebang}\n${shared}${body}`;
    return [verb, { text, sha: hash("sha1", text) }];
  });
  return Object.fromEntries(entries) as Record<Verb, Script>;
}

function splitFirstLine(text: string): [string, string] {
  const end = text.indexOf("\n");
  return [text.slice(0, end), text.slice(end + 1)];
}
