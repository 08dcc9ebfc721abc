/**
 * The Lua scripts of the store. The files are in lua/; each describes its keys, arguments and results at its beginning.
 *
 * A script consists of shared parts, followed by its own file. The shared parts are `clock()`, the functions of lua/partition.lua,
 * lua/sessions.lua and others on demand, and the first step of every script (lua/deadline.lua), which sets `now`, and ends the script if it
 * runs outside of the time in which the command may act. Because of the `#!lua` line, Redis refuses all scripts on a read-only replica,
 * where even a read could be out of date. Redis also refuses scripts when memory is full, before anything is written, except scripts with
 * the flag allow-oom, which need no additional memory.
 */
import { hash } from "node:crypto";
import { readFileSync } from "node:fs";

/**
 * The scripts, each with the shared parts that not all of them have: lua/subject.lua, which reads and writes the whole index of a subject,
 * lua/blocks.lua, which reads and writes parts of a record after its head, and lua/limit.lua. rotate.lua has parts of its own.
 */
const PARTS = {
  attach: [],
  attached: [],
  claim: [],
  count: [],
  create: ["subject", "blocks", "limit"],
  detach: [],
  due: [],
  elevate: ["blocks"],
  end: [],
  end_all: ["subject"],
  end_owned: [],
  end_rest: [],
  event_sessions: [],
  events: [],
  expire: [],
  find: [],
  forget: ["subject"],
  forget_last_seen: ["blocks"],
  forget_records: [],
  horizon: [],
  list: ["subject"],
  newest: [],
  read: [],
  record: [],
  register_key: ["blocks"],
  revocations: [],
  revoke_all: [],
  rotate: [],
  signal_advance: [],
  signal_cursors: [],
  signal_ends: [],
  signal_lease: [],
  signal_reader: [],
  signal_waiting: [],
  signals: [],
  signals_of: [],
  subscription: [],
  sweep: [],
  token: [],
  unbind: ["blocks"],
  update: ["blocks"],
  upstream: [],
} as const satisfies Record<string, readonly ("subject" | "blocks" | "limit")[]>;

export type Verb = keyof typeof PARTS;

/**
 * A script's text and its SHA-1, by which Redis knows it. The text is put together whenever it is read: a process needs it only until Redis
 * knows the script, and to keep all of them would take 1.4 MB.
 */
type Script = { readonly text: string; readonly sha: string };

/** `sync` is loaded differently: it has none of the shared parts except `clock()`, and is never refused as late. */
export type Scripts = Readonly<Record<Verb | "sync", Script>>;

export function readLua(name: string): string {
  return readFileSync(new URL(`./lua/${name}.lua`, import.meta.url), "utf8");
}

/** @param clock the Lua code that defines `clock()`, the time in ms. Default: the node's clock; tests replace it */
export function loadScripts(clock: string = readLua("clock")): Scripts {
  const partition = clock + readLua("partition");
  const sessions = readLua("sessions");
  const blocks = readLua("blocks");
  const deadline = readLua("deadline");
  const texts = { subject: readLua("subject"), blocks, limit: limitsOnDemand(readLua("limit")) };
  const shared = (verb: Verb): string => {
    if (verb === "rotate") return partition + onDemand(sessions, blocks) + deadline;
    const parts = PARTS[verb].map((name) => texts[name]);
    return [partition, blocksOnDemand(blocks), sessions, ...parts, deadline].join("");
  };
  const verbs = Object.keys(PARTS) as Verb[];
  const entries = verbs.map((verb) => [verb, script(verb, shared(verb))] as const);
  return { ...(Object.fromEntries(entries) as Record<Verb, Script>), sync: script("sync", clock) };
}

/** Defines functions only on demand. Lua creates functions anew in each run; without these a refresh takes a tenth less time. */
function onDemand(sessions: string, blocks: string): string {
  return `${blocksOnDemand(blocks)}local function session_functions()\n${sessions}return marked, ends_with_subject, close, unindex\nend\n`;
}

/** lua/sessions.lua reads the blocks of records only if it must. */
function blocksOnDemand(blocks: string): string {
  return `local function block_function()\n${blocks}return block_at, FACTS\nend\n`;
}

function limitsOnDemand(limit: string): string {
  return `local function limit_functions()\n${limit}return live_sessions, take_excess, group_of, in_group, alike\nend\n`;
}

function script(name: string, shared: string): Script {
  const [shebang, body] = splitFirstLine(readLua(name));
  const textOf = () => `${shebang}\n${shared}${body}`;
  return {
    get text() {
      return textOf();
    },
    sha: hash("sha1", textOf()),
  };
}

function splitFirstLine(text: string): [string, string] {
  const end = text.indexOf("\n");
  return [text.slice(0, end), text.slice(end + 1)];
}
