import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { isObject, type JsonObject } from "./json.ts";

/**
 * The parts of a document that .proto files cannot express: title, servers, credentials, errors. Patches are JSON Merge Patches (RFC 7396).
 */
export interface Overlay {
  /** Patches the whole document. */
  readonly document?: JsonObject;
  /** Patches operations, by the full name of their RPC (`pkg.Service.Method`) or `*` for all of them. */
  readonly operations?: Readonly<Record<string, JsonObject>>;
}

/**
 * Reads a JSON file, or the default export of a module; the module itself if it has none.
 * @param path an absolute path, or one relative to the working directory of the plugin
 * @throws Error if it is no object
 */
export function loadObject(path: string): object {
  const loaded: unknown = createRequire(join(process.cwd(), "loaded"))(resolve(path));
  const value = typeof loaded === "object" && loaded !== null && "default" in loaded ? loaded.default : loaded;
  if (typeof value !== "object" || value === null) throw new Error(`${path}: not an object`);
  return value;
}

/**
 * Reads an overlay from a JSON file, or from the default export of a module.
 * @param path an absolute path, or one relative to the working directory of the plugin
 */
export function loadOverlay(path: string): Overlay {
  const overlay = loadObject(path);
  if (!isObject(overlay)) throw new Error(`${path}: not an object`);
  const { document = {}, operations = {}, ...unknown } = overlay;
  const [stray] = Object.keys(unknown);
  if (stray !== undefined) throw new Error(`${path}: unknown member "${stray}"`);
  if (!isObject(document) || !isObject(operations)) throw new Error(`${path}: "document" or "operations" is no object`);
  return { document, operations: operations as Record<string, JsonObject> };
}
