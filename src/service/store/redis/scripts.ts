/**
 * The Lua scripts of the store, the verbs. The files are in lua/; each describes its keys, arguments and results at its beginning.
 *
 * A line `-- @include lib/live.lua: live, was_revoked` stands for the text of that file, of which the script uses these names. Outside of
 * blocks a text is included once. Indented, it belongs to its block alone: Lua creates functions anew in each run, and so a refresh creates
 * only those that it needs.
 *
 * Every verb begins with lib/deadline.lua, which ends it if it runs outside of the time in which the command may act. Three scripts are no
 * verbs, and have no deadline: sync.lua finds out the time, checks/permissions.lua writes nothing, and checks/claim_owner.lua compares
 * before it writes.
 *
 * Because of the `#!lua` line, Redis refuses all scripts on a read-only replica, where even a read could be out of date. Redis also refuses
 * scripts when memory is full, before anything is written, except those with the flag allow-oom: they read, end, record or tidy up, which
 * has to go on then, and need little additional memory or none.
 */
import { hash } from "node:crypto";
import type { Verb } from "./encoding/arguments.ts";
import { KEY } from "./keys.ts";
import { readLua, scriptNames } from "./lua-files.ts";

/**
 * A script's text and its SHA-1, by which Redis knows it. The text is put together whenever it is read: a process needs it only until Redis
 * knows the script, and to keep all of them would take 0.7 MB.
 */
type Script = { readonly text: string; readonly sha: string };

/** `sync` is loaded as the verbs are, but called without a deadline (script-runner.ts): it is never refused as late. */
export type Scripts = Readonly<Record<Verb | "sync", Script>>;

/** @param clock the Lua code that defines `clock()`, the time in ms. Default: the node's clock; tests replace it */
export function loadScripts(clock: string = readLua("lib/clock")): Scripts {
  const libraries = new Map([["lib/clock", clock]]);
  return Object.fromEntries(scriptNames().map((name) => [name, script(name, libraries)])) as Scripts;
}

function script(name: string, libraries: Map<string, string>): Script {
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

/** Replaces the names of keys by their letters, in quotes. */
function withLetters(text: string): string {
  return text.replace(/\bKEY\.(\w+)/g, (_, name: keyof typeof KEY) => `'${KEY[name]}'`);
}
