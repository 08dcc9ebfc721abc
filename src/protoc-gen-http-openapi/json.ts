/** A JSON value. Undefined members are left out. */
export type Json = string | number | boolean | null | readonly Json[] | JsonObject;
export type JsonObject = { readonly [name: string]: Json | undefined };

/** Whether a value is a JSON object: not null, not an array. */
export function isObject(json: unknown): json is JsonObject {
  return typeof json === "object" && json !== null && !Array.isArray(json);
}

/** Applies a JSON Merge Patch (RFC 7396): objects are merged member by member, null removes, any other value replaces. */
export function mergePatch(target: Json | undefined, patch: Json): Json {
  if (!isObject(patch)) return patch;
  const merged: Record<string, Json | undefined> = isObject(target) ? { ...target } : {};
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete merged[name];
    else if (value !== undefined) merged[name] = mergePatch(merged[name], value);
  }
  return merged;
}

/** Returns an object with its members sorted by name. */
export function sorted(entries: Iterable<readonly [string, Json]>): JsonObject {
  return Object.fromEntries([...entries].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Returns the first free name of `name`, `name_2`, `name_3`, …, and adds it to those that are `taken`. */
export function unique(taken: Set<string>, name: string): string {
  let free = name;
  for (let n = 2; taken.has(free); n++) free = `${name}_${n}`;
  taken.add(free);
  return free;
}
