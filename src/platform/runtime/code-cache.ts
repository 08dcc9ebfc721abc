/**
 * Loads CommonJS modules with code that earlier processes have compiled. Node's own cache of code lacks the functions that V8 compiles when
 * they are called first, of which the start and the first requests of a process need many.
 */
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, relative, resolve } from "node:path";
import { cachedDataVersionTag, deserialize, serialize } from "node:v8";
import { Script } from "node:vm";
import { crc32 } from "node:zlib";
import { START_FLAG, setFlag } from "./lean-start.ts";

type Module = { exports: unknown };
type Wrapper = (exports: unknown, require: unknown, module: Module, file: string, directory: string) => void;

/** The code of a module, and the checksum of its source: V8 itself compares no more of a source than its length. */
type Code = { readonly source: number; readonly data: Uint8Array };
/** Code by the path of the module, for one version and the same flags of V8. */
type Stored = { readonly tag: number; readonly modules: ReadonlyMap<string, Code> };

const NOTHING: Stored = { tag: 0, modules: new Map() };
/** How long after the start stored code is kept in memory, in ms. It takes 2 MB, and little is loaded later. */
const RELEASED_MS = 5_000;

/**
 * Returns a function that loads a module, and those that it requires by a relative path. They cannot use `import()`. When the process ends,
 * the code of what a lean start has loaded is stored if it is more than was there. What is missing, damaged, or of another Node is compiled
 * and replaced. Where nobody may write, nothing is stored.
 *
 * @param path the file with the code. V8 runs what it contains, so nobody else may write there
 */
export function createCachedLoad(path: string): (file: string) => unknown {
  const modules = new Map<string, Module>();
  const loaded = new Map<string, { readonly tag: number; readonly source: number; readonly script: Script }>();
  let stored = readCode(path);
  setTimeout(() => {
    stored = NOTHING;
  }, RELEASED_MS).unref();

  function load(file: string): unknown {
    const known = modules.get(file);
    if (known !== undefined) return known.exports;
    const module: Module = { exports: {} };
    modules.set(file, module);
    const code = readFileSync(file, "utf8");
    const [name, tag, source] = [relative(dirname(path), file), cachedDataVersionTag(), crc32(code)];
    const found = stored.tag === tag ? stored.modules.get(name) : undefined;
    const script = new Script(`(function (exports, require, module, __filename, __dirname) { ${code}\n})`, {
      filename: file,
      ...(found?.source === source && { cachedData: found.data }),
    });
    loaded.set(name, { tag, source, script });
    const requireOther = createRequire(file);
    const require = (id: string) => (/^\..*\.cjs$/.test(id) ? load(resolve(dirname(file), id)) : requireOther(id));
    (script.runInThisContext() as Wrapper)(module.exports, require, module, file, dirname(file));
    return module.exports;
  }

  process.once("exit", () => {
    setFlag(START_FLAG);
    const tag = cachedDataVersionTag();
    const present = readCode(path);
    const before = present.tag === tag ? present.modules : NOTHING.modules;
    const after = [...loaded]
      .filter(([, each]) => each.tag === tag)
      .map(([name, { source, script }]) => [name, { source, data: script.createCachedData() }] as const);
    const isMore = ([name, { source, data }]: readonly [string, Code]) => {
      const known = before.get(name);
      return known?.source !== source || known.data.length < data.length;
    };
    if (after.some(isMore)) writeCode(path, { tag, modules: new Map([...before, ...after]) });
  });
  return load;
}

/** The length of the checksum in front of the rest of the file. A part of a file that a power failure damaged could end the process. */
const CHECKSUM_BYTES = 4;

function readCode(path: string): Stored {
  try {
    const bytes = readFileSync(path);
    const rest = bytes.subarray(CHECKSUM_BYTES);
    if (bytes.readUInt32LE() === crc32(rest)) return deserialize(rest) as Stored;
  } catch {
    // There is none, or it is of no use.
  }
  return NOTHING;
}

function writeCode(path: string, stored: Stored): void {
  const rest = serialize(stored);
  const checksum = Buffer.alloc(CHECKSUM_BYTES);
  checksum.writeUInt32LE(crc32(rest));
  const written = `${path}.${process.pid}`;
  try {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(written, Buffer.concat([checksum, rest]));
    renameSync(written, path);
  } catch {
    // Nobody may write there, or the disk is full. The next start takes longer, and that is all.
    if (existsSync(written)) rmSync(written);
  }
}
