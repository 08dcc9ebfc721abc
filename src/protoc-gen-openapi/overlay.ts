import { createRequire } from "node:module";
import { join } from "node:path";
import { isObject, type JsonObject } from "./json.ts";

/**
 * What no .proto file says of a service: title, servers, credentials, its own errors. Patches are JSON Merge Patches
 * (RFC 7396): objects are merged, null removes, all else replaces.
 */
export interface Overlay {
  /** Of the whole document. */
  readonly document?: JsonObject;
  /** Of operations: by the full name of their RPC (`auth.v1.SessionService.Refresh`), `*` for all of them. */
  readonly operations?: Readonly<Record<string, JsonObject>>;
}

/**
 * Reads an overlay from a JSON file, or from the default export of a module.
 * @param path from the directory that the plugin runs in
 */
export function loadOverlay(path: string): Overlay {
  const loaded: unknown = createRequire(join(process.cwd(), "overlay"))(join(process.cwd(), path));
  const overlay = isObject(loaded) && "default" in loaded ? loaded.default : loaded;
  if (!isObject(overlay)) throw new Error(`${path}: not an object`);
  const { document = {}, operations = {}, ...unknown } = overlay;
  const [stray] = Object.keys(unknown);
  if (stray !== undefined) throw new Error(`${path}: unknown member "${stray}"`);
  if (!isObject(document) || !isObject(operations)) throw new Error(`${path}: "document" or "operations" is no object`);
  return { document, operations: operations as Record<string, JsonObject> };
}
