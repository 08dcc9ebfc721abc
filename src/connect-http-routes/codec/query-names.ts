import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { hasOwnJson, isTextField, isTextMap } from "../routes/field-path.ts";

/** The resolved name of a parameter. */
export interface Target {
  /** The fields, outermost first. */
  readonly fields: readonly DescField[];
  /** The key of a map field, as text. */
  readonly mapKey: string | undefined;
  /** The path of the field in proto names, so that a field that is given twice is detected even if the spellings of its name differ. */
  readonly path: string;
}

/** Why a name leads to no field that a query can set, although it starts with the name of a field. */
interface Unreadable {
  readonly reason: string;
}

/** Maximum depth of a parameter's field path, the same as the nesting limit of proto JSON. */
const MAX_DEPTH = 100;

/**
 * Resolves a parameter's name: fields by JSON name or proto name, nested ones as `a.b.c`, entries of a map as `a[key]`. A `json_name` may
 * contain any character, so a name that equals that of a field as a whole takes precedence over one that is split at a dot or a bracket.
 *
 * @param bound the paths, in proto names, of fields that only path or body can set
 * @returns undefined if the name is unknown, or if path or body bind the field
 */
export function resolveName(
  type: DescMessage,
  name: string,
  bound: readonly string[],
): Target | Unreadable | undefined {
  const found = new NameReader(bound).read(type, name, [], "");
  return found === "bound" || found === "unknown" ? undefined : found;
}

type Reading = Target | Unreadable | "bound" | "unknown";

class NameReader {
  readonly #bound: readonly string[];
  /**
   * For each type, the rests of the name that lead to no field. So each rest is tried once, however many ways there are to split the name.
   */
  readonly #dead = new Map<DescMessage, Map<number, Reading>>();

  constructor(bound: readonly string[]) {
    this.#bound = bound;
  }

  /** Reads the rest of a name within a type: by the field with the longest name that leads to a field. */
  read(type: DescMessage, rest: string, outer: readonly DescField[], path: string): Reading {
    const known = this.#dead.get(type)?.get(rest.length);
    if (known !== undefined) return known;
    let failure: Reading = "unknown";
    for (const [field, after] of fieldsAtStart(type, rest)) {
      const reading = this.#readField(field, after, outer, path);
      if (typeof reading === "object" && "fields" in reading) return reading;
      if (failure === "unknown") failure = reading;
    }
    if (failure === "unknown" && outer.length > 0) {
      failure = { reason: `message ${type.typeName} has no field "${rest.split(".")[0]}"` };
    }
    const dead = this.#dead.get(type) ?? new Map<number, Reading>();
    this.#dead.set(type, dead.set(rest.length, failure));
    return failure;
  }

  /** Reads what follows the name of a field: nothing, a dot and the name of a field within it, or the key of a map in brackets. */
  #readField(field: DescField, after: string, outer: readonly DescField[], within: string): Reading {
    const fields = [...outer, field];
    const path = within === "" ? field.name : `${within}.${field.name}`;
    if (this.#bound.includes(path)) return "bound";
    if (fields.length > MAX_DEPTH) return { reason: "nested too deeply" };
    if (after.startsWith(".")) {
      const inner = field.fieldKind === "message" && !hasOwnJson(field.message) ? field.message : undefined;
      if (inner === undefined) return { reason: `${field.name} has no fields that a query can set` };
      return this.read(inner, after.slice(1), fields, path);
    }
    // Path or body bind a field within this message, so the query cannot set the message.
    if (this.#bound.some((other) => other.startsWith(`${path}.`))) return "bound";
    if (after !== "" && !after.endsWith("]")) return { reason: "a map key ends with ]" };
    const mapKey = after === "" ? undefined : after.slice(1, -1);
    if (mapKey !== undefined && field.fieldKind !== "map") return { reason: `${field.name} is not a map` };
    if (mapKey === undefined ? !isTextField(field) : !isTextMap(field)) {
      return { reason: "this field cannot be given in a query" };
    }
    return { fields, mapKey, path: mapKey === undefined ? path : `${path}[${mapKey}]` };
  }
}

/**
 * Returns the fields with whose JSON name or proto name a name starts, each with the text that follows. The field with the longest name
 * comes first. If two names are equally long, the JSON name precedes the proto name.
 */
function fieldsAtStart(type: DescMessage, name: string): (readonly [field: DescField, after: string])[] {
  const found: (readonly [DescField, string])[] = [];
  for (const spelling of ["jsonName", "name"] as const) {
    for (const field of type.fields) {
      const start = field[spelling];
      if (!name.startsWith(start)) continue;
      const after = name.slice(start.length);
      if (after === "" || after.startsWith(".") || after.startsWith("[")) found.push([field, after]);
    }
  }
  return found.sort(([, a], [, b]) => a.length - b.length);
}
