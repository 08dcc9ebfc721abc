/**
 * The Lua scripts of the store. The files are in lua/; each describes its keys, arguments and results at its beginning.
 *
 * A line `-- @include lib/live.lua: live, was_revoked` stands for the text of that file, of which the script uses these names. Outside of
 * blocks a text is included once. Indented, it belongs to its block alone: Lua creates functions anew in each run, and so a refresh creates
 * only those that it needs.
 *
 * Every verb begins with lib/deadline.lua, which ends it if it runs outside of the time in which the command may act. Three scripts are no
 * verbs, and have no deadline: sync.lua finds out the time; of the checks in checks/, permissions.lua writes nothing, and claim_owner.lua
 * compares before it writes.
 *
 * Because of the `#!lua` line, Redis refuses all scripts on a read-only replica, where even a read could be out of date. Redis also refuses
 * scripts when memory is full, before anything is written, except those with the flag allow-oom: they read, end, record or tidy up, which
 * has to go on then, and need little additional memory or none.
 */
import { hash } from "node:crypto";
import { readFileSync } from "node:fs";

const VERBS = [
  "attach",
  "attached",
  "claim",
  "count",
  "create",
  "detach",
  "due",
  "elevate",
  "end",
  "end_all",
  "end_owned",
  "end_rest",
  "event_sessions",
  "events",
  "expire",
  "find",
  "forget",
  "forget_last_seen",
  "forget_records",
  "latest_creation",
  "list",
  "newest",
  "provider_note",
  "read",
  "record",
  "register_key",
  "revocations",
  "revoke_all",
  "rotate",
  "signal_advance",
  "signal_cursors",
  "signal_ends",
  "signal_lease",
  "signal_reader",
  "signal_waiting",
  "signals",
  "signals_of",
  "subscription",
  "sweep",
  "unbind",
  "update",
  "upstream",
] as const;

export type Verb = (typeof VERBS)[number];

/**
 * A script's text and its SHA-1, by which Redis knows it. The text is put together whenever it is read: a process needs it only until Redis
 * knows the script, and to keep all of them would take 0.7 MB.
 */
type Script = { readonly text: string; readonly sha: string };

/** `sync` is loaded as the verbs are, but called without a deadline (script-runner.ts): it is never refused as late. */
export type Scripts = Readonly<Record<Verb | "sync", Script>>;

/** @param name of a file in lua/, without its ending */
export function readLua(name: string): string {
  return readFileSync(new URL(`./lua/${name}.lua`, import.meta.url), "utf8");
}

/** @param clock the Lua code that defines `clock()`, the time in ms. Default: the node's clock; tests replace it */
export function loadScripts(clock: string = readLua("lib/clock")): Scripts {
  const libraries = new Map([["lib/clock", clock]]);
  const withLetters = createKeyNames();
  const entries = ([...VERBS, "sync"] as const).map((name) => [name, script(name, libraries, withLetters)] as const);
  return Object.fromEntries(entries) as Record<Verb | "sync", Script>;
}

function script(name: Verb | "sync", libraries: Map<string, string>, withLetters: (text: string) => string): Script {
  const textOf = () => withLetters(withIncluded(readLua(name), libraries, new Set()));
  return {
    get text() {
      return textOf();
    },
    sha: hash("sha1", textOf()),
  };
}

const INCLUDE = /^( *)-- @include (lib\/\w+)\.lua.*\n/gm;

/**
 * Replaces each line that includes a library by its text.
 * @param libraries the texts that were read already
 * @param included the libraries that the script has already outside of any block; this adds further ones
 */
function withIncluded(text: string, libraries: Map<string, string>, included: Set<string>): string {
  return text.replace(INCLUDE, (_, indent: string, name: string) => {
    if (included.has(name)) return "";
    const known = indent === "" ? included.add(name) : new Set([...included, name]);
    const library = libraries.get(name) ?? readLua(name);
    libraries.set(name, library);
    return withIncluded(library, libraries, known);
  });
}

/** Returns a function that replaces the names of keys in a text by their letters, which lib/keys.lua defines. */
function createKeyNames(): (text: string) => string {
  const lines = readLua("lib/keys").matchAll(/^-- +KEY\.(\w+) = ('\w')/gm);
  const letters = new Map(Array.from(lines, ([, name, letter]) => [name, letter]));
  return (text) =>
    text.replace(/\bKEY\.(\w+)/g, (key, name: string) => {
      const letter = letters.get(name);
      if (letter === undefined) throw new TypeError(`lib/keys.lua does not define ${key}`);
      return letter;
    });
}
