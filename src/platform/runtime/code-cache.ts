/**
 * Loads CommonJS modules with code that earlier processes have compiled. Node's own cache of code lacks the functions that V8 compiles when
 * they are called first, of which the start and the first requests of a process need many.
 */
import {
  closeSync,
  fstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  type Stats,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, relative, resolve } from "node:path";
import { cachedDataVersionTag, deserialize, serialize } from "node:v8";
import { Script } from "node:vm";
import { crc32 } from "node:zlib";
import { START_FLAG, setFlag } from "./lean-start.ts";

type Module = { exports: unknown };
type Wrapper = (exports: unknown, require: unknown, module: Module, file: string, directory: string) => void;

/** The code of a module, and the checksum of its source: V8 itself compares no more of a source than its length. */
type Code = { readonly source: number; readonly data: Uint8Array };
/** Code by the path of the module. It is for one version and the same flags of V8, whose tag is the name of its file. */
type Stored = ReadonlyMap<string, Code>;

/** How long stored code is kept in memory, in ms. It takes 2 MB, and little is loaded after the start. */
const RELEASED_MS = 5_000;

/**
 * Returns a function that loads a module and those that it requires by a relative path. They cannot use `import()`. When the process ends,
 * the code of most modules (those with the same flags of V8) is stored if it is more than was there. What is missing, damaged or of another
 * Node is compiled and replaced. Where nobody may write, nothing is stored.
 *
 * @param directory where the files with the code are, and nothing else
 */
export function createCachedLoad(directory: string): (file: string) => unknown {
  const modules = new Map<string, Module>();
  const loaded = new Map<string, { readonly tag: number; readonly source: number; readonly script: Script }>();
  let stored: { readonly tag?: number; readonly code?: Stored } = {};
  setTimeout(() => {
    stored = {};
  }, RELEASED_MS).unref();

  function load(file: string): unknown {
    const known = modules.get(file);
    if (known !== undefined) return known.exports;
    const module: Module = { exports: {} };
    modules.set(file, module);
    const text = readFileSync(file, "utf8");
    const [name, tag, source] = [relative(directory, file), cachedDataVersionTag(), crc32(text)];
    if (stored.tag !== tag) stored = { tag, code: readCode(directory, tag) };
    const found = stored.code?.get(name);
    const script = new Script(`(function (exports, require, module, __filename, __dirname) { ${text}\n})`, {
      filename: file,
      ...(found?.source === source && { cachedData: found.data }),
    });
    loaded.set(name, { tag, source, script });
    const requireOther = createRequire(file);
    const require = (id: string) => (/^\..*\.cjs$/.test(id) ? load(resolve(dirname(file), id)) : requireOther(id));
    (script.runInThisContext() as Wrapper)(module.exports, require, module, file, dirname(file));
    return module.exports;
  }

  function store(tag: number): void {
    const before = readCode(directory, tag);
    const after = new Map(before);
    let isMore = false;
    for (const [name, { tag: loadedWith, source, script }] of loaded) {
      if (loadedWith !== tag) continue;
      const known = before.get(name);
      const data = script.createCachedData();
      isMore ||= known?.source !== source || known.data.length < data.length || script.cachedDataRejected === true;
      after.set(name, { source, data });
    }
    if (isMore) writeCode(directory, tag, after);
  }

  process.once("exit", () => {
    const tag = mostFrequent([...loaded.values()].map((each) => each.tag));
    // The compiler that optimizes may be on by now.
    if (cachedDataVersionTag() !== tag) setFlag(START_FLAG);
    if (tag !== undefined && cachedDataVersionTag() === tag) attempt(() => store(tag));
  });
  return load;
}

function mostFrequent(tags: readonly number[]): number | undefined {
  const counts = Map.groupBy(tags, (tag) => tag);
  return [...counts.values()].sort((a, b) => b.length - a.length)[0]?.[0];
}

/** The length of the checksum in front of the rest of a file. Code that a power failure damaged could end the process. */
const CHECKSUM_BYTES = 4;

function readCode(directory: string, tag: number): Stored {
  let code: Stored | undefined;
  attempt(() => {
    const file = openSync(join(directory, String(tag)), "r");
    try {
      const bytes = isTrusted(fstatSync(file)) ? readFileSync(file) : Buffer.alloc(CHECKSUM_BYTES);
      const rest = bytes.subarray(CHECKSUM_BYTES);
      if (bytes.readUInt32LE() === crc32(rest)) code = deserialize(rest) as Stored;
    } finally {
      closeSync(file);
    }
  });
  return code ?? new Map();
}

/** Returns whether only root or this user can have written a file: V8 runs what it contains. Windows says neither of a file. */
function isTrusted({ uid, mode }: Stats): boolean {
  const user = process.geteuid?.();
  return user === undefined || ((uid === 0 || uid === user) && (mode & 0o022) === 0);
}

function writeCode(directory: string, tag: number, code: Stored): void {
  const rest = serialize(code);
  const checksum = Buffer.alloc(CHECKSUM_BYTES);
  checksum.writeUInt32LE(crc32(rest));
  const file = join(directory, String(tag));
  const written = `${file}.${process.pid}`;
  mkdirSync(directory, { recursive: true, mode: 0o755 });
  try {
    // Other users may start the service, too.
    writeFileSync(written, Buffer.concat([checksum, rest]), { mode: 0o644 });
    renameSync(written, file);
  } catch {
    rmSync(written, { force: true });
  }
}

/** Tries something that fails where nobody may write, or on a full disk. The next start takes longer then, and that is all. */
function attempt(action: () => void): void {
  try {
    action();
  } catch {
    // There is nothing to be done.
  }
}
