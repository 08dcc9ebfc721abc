/**
 * Preloaded into services under test (`node --import`): records every credential that a service makes, and every word that it emits in
 * logs, responses and outgoing requests. `leaks.ts` compares the two at the end of a run.
 */
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { ClientRequest, ServerResponse } from "node:http";
import { Http2ServerResponse } from "node:http2";
import { join } from "node:path";
import { credentialsIn, secretsOfRing } from "./credentials.ts";

/**
 * Matches words that may contain a credential. Shorter words are names, numbers and times, and a shorter part of a credential gives no
 * access.
 */
const WORD = /[\w-]{23,}/g;
/** The calls whose responses carry tokens to their owner. */
const ISSUES =
  /\/(Refresh|GrantToken|CreateSession|RegisterDevice|RenewDevice|v1\/auth\/(refresh|device|device\/refresh)|v1\/oauth\/token)$/;
/** How many words are remembered so that they are not recorded twice. */
const MAX_KNOWN = 50_000;
const FLUSH_INTERVAL_MS = 100;

const file = join(process.env.EMISSIONS_DIR ?? "", `${process.pid}-${Date.now()}.jsonl`);
const known = new Set<string>();
let lines = "";

const note = (kind: "made" | "emitted", word: string, source: string) => {
  if (known.has(kind + word)) return;
  if (known.size === MAX_KNOWN) known.clear();
  known.add(kind + word);
  lines += `${JSON.stringify([kind, word, source])}\n`;
};
/**
 * Records a credential. It ignores `"a".repeat(40)`, the admin token of some tests, and texts that other tests use as names and subjects.
 */
const made = (credential: string, source: string) => {
  if (new Set(credential).size > 15) note("made", credential, source);
};
const emitted = (text: string, source: string) => {
  for (const [word] of text.matchAll(WORD)) note("emitted", word, source);
};

type Wrapped = (this: unknown, ...args: unknown[]) => unknown;

/** Calls `look` before each call of a method. It replaces the method, because Node has no hooks for these calls. */
function before(owner: object, method: string, look: (self: unknown, args: readonly unknown[]) => void): void {
  const original = Reflect.get(owner, method) as Wrapped;
  Reflect.set(owner, method, function (this: unknown, ...args: unknown[]) {
    look(this, args);
    return original.apply(this, args);
  } satisfies Wrapped);
}

/** Returns bytes as text. Tokens are ASCII in every encoding that the service speaks. */
function textOf(value: unknown): string {
  if (typeof value === "string") return value;
  if (value instanceof Uint8Array)
    return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("latin1");
  return typeof value === "object" && value !== null ? JSON.stringify(value) : "";
}

for (const [name, stream] of [["stdout", process.stdout] as const, ["stderr", process.stderr] as const]) {
  before(stream, "write", (_, [chunk]) => emitted(textOf(chunk), name));
}

/**
 * Buffers of at least this size count as files that many responses share, such as pages. Each is searched only once, because searching it
 * for each response would slow down tests that measure times.
 */
const FILE_BYTES = 16 * 1024;
const seen = new WeakMap<ArrayBufferLike, Set<string>>();

/**
 * Returns whether these bytes are part of a file that was already searched. Buffers that are too small to count as a file are always
 * searched, because Node may have reused their memory for other contents.
 */
function isSeen(value: unknown): boolean {
  if (!(value instanceof Uint8Array) || value.byteLength < FILE_BYTES) return false;
  const pieces = seen.get(value.buffer) ?? new Set();
  seen.set(value.buffer, pieces);
  const { size } = pieces;
  return pieces.add(`${value.byteOffset}+${value.byteLength}`).size === size;
}

for (const { prototype } of [ServerResponse, Http2ServerResponse]) {
  for (const method of ["writeHead", "setHeader", "addTrailers", "write", "end"]) {
    before(prototype, method, (self, args) => {
      const { req, statusCode } = self as ServerResponse;
      const status = typeof args[0] === "number" ? args[0] : statusCode;
      const path = (req.url ?? "").split("?", 1)[0] ?? "";
      const source = `response to ${req.method} ${path} (${status})`;
      const issues = ISSUES.test(path) && status < 300 && method !== "addTrailers";
      for (const arg of args) {
        const text = isSeen(arg) ? "" : textOf(arg);
        if (text === "") continue;
        const credentials = issues ? credentialsIn(text) : [];
        for (const credential of credentials) made(credential, source);
        // Apart from the credentials that it issues, the response must not contain any.
        emitted(
          credentials.reduce((rest, credential) => rest.replaceAll(credential, " "), text),
          source,
        );
      }
    });
  }
}
for (const method of ["setHeader", "write", "end"]) {
  before(ClientRequest.prototype, method, (_, args) => {
    for (const argument of args) emitted(textOf(argument), "request of the service");
  });
}

function noteKeys(): void {
  const { DATA_DIR = "data", KEYS_FILE = join(DATA_DIR, "keys.json"), ADMIN_TOKENS = "" } = process.env;
  try {
    const tokenFile = join(DATA_DIR, "admin-token");
    if (existsSync(KEYS_FILE)) for (const secret of secretsOfRing(readFileSync(KEYS_FILE, "utf8"))) made(secret, "key");
    if (existsSync(tokenFile)) made(readFileSync(tokenFile, "utf8").trim(), "admin token");
  } catch {
    // Errors are ignored, because some tests use broken key rings and directories without permissions.
  }
  for (const token of ADMIN_TOKENS.split(",")) if (token.length >= 32) made(token, "admin token");
}

function flush(): void {
  noteKeys();
  if (lines === "") return;
  try {
    appendFileSync(file, lines);
  } catch {
    // Writing fails while a test has used up all file descriptors. The lines are kept, and a later flush writes them.
    return;
  }
  lines = "";
}

setInterval(flush, FLUSH_INTERVAL_MS).unref();
process.on("exit", flush);
