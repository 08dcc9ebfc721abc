import type { DescField, DescMessage, Registry } from "@bufbuild/protobuf";
import type { ReflectMessage } from "@bufbuild/protobuf/reflect";
import { hasOwnJson } from "../routes/field-path.ts";
import { decodeAll, MalformedEscape } from "../routes/percent.ts";
import { BadInput } from "./bad-input.ts";
import { isTextField, otherOneofMember, setFromText, TextValueError } from "./text-value.ts";

/** Sets the fields of a request message from a query string. */
export type QueryReader = (query: string, message: ReflectMessage) => void;

export interface QueryOptions {
  /** Whether a parameter that names no field is refused (400) instead of ignored. */
  readonly refuseUnknown: boolean;
  readonly registry: Registry | undefined;
}

/**
 * @param bound the paths, in proto names, of the fields that path and body bind; the query cannot set them
 */
export function createQueryReader(type: DescMessage, bound: readonly string[], options: QueryOptions): QueryReader {
  // A cache of resolved names, bounded because clients choose them.
  const known = new Map<string, readonly DescField[]>();

  function resolve(name: string): readonly DescField[] | undefined {
    const hit = known.get(name);
    if (hit !== undefined) return hit;
    const fields = fieldsOf(type, name);
    if (fields === undefined) return undefined;
    const path = fields.map((field) => field.name).join(".");
    if (bound.some((other) => path === other || path.startsWith(`${other}.`) || other.startsWith(`${path}.`))) {
      return undefined;
    }
    if (known.size < 256) known.set(name, fields);
    return fields;
  }

  return (query, message) => {
    const given = new Set<string>();
    for (const [name, value] of parameters(query)) {
      const fields = resolve(name);
      const last = fields?.at(-1);
      if (fields === undefined || last === undefined) {
        if (options.refuseUnknown) throw new BadInput("query", name, "unknown parameter");
        continue;
      }
      if (!isTextField(last)) throw new BadInput("query", name, "this field cannot be given in a query");
      refuseSecondValue(given, fields, name);
      refuseSecondOneofMember(message, fields, name);
      try {
        setFromText(message, fields, value, options.registry);
      } catch (error) {
        if (error instanceof TextValueError) throw new BadInput("query", name, error.message);
        throw error;
      }
    }
  };
}

/** @param given the paths, in proto names, of the fields that the query has set so far */
function refuseSecondValue(given: Set<string>, fields: readonly DescField[], name: string): void {
  if (fields.at(-1)?.fieldKind === "list") return;
  const path = fields.map((field) => field.name).join(".");
  if (given.has(path)) throw new BadInput("query", name, "given more than once");
  given.add(path);
}

/** `application/x-www-form-urlencoded`, in order of appearance: `+` is a space, escapes are UTF-8 and well-formed. */
function* parameters(query: string): Generator<[name: string, value: string]> {
  for (const pair of query.split("&")) {
    if (pair === "") continue;
    const equals = pair.indexOf("=");
    const [name, value] = equals === -1 ? [pair, ""] : [pair.slice(0, equals), pair.slice(equals + 1)];
    try {
      yield [decodeAll(name.replaceAll("+", " ")), decodeAll(value.replaceAll("+", " "))];
    } catch (error) {
      if (error instanceof MalformedEscape) throw new BadInput("query", undefined, error.message);
      throw error;
    }
  }
}

/** Maximum depth of a parameter's field path, the same as the nesting limit of proto JSON. */
const MAX_DEPTH = 100;

/** Resolves a parameter's name, each part by JSON name or proto name. */
function fieldsOf(type: DescMessage, name: string): DescField[] | undefined {
  const fields: DescField[] = [];
  let within: DescMessage | undefined = type;
  const parts = name.split(".");
  if (parts.length > MAX_DEPTH) return undefined;
  for (const part of parts) {
    const candidates: readonly DescField[] = within?.fields ?? [];
    const field = candidates.find((f) => f.jsonName === part) ?? candidates.find((f) => f.name === part);
    if (field === undefined) return undefined;
    fields.push(field);
    within = field.fieldKind === "message" && !hasOwnJson(field.message) ? field.message : undefined;
  }
  return fields;
}

function refuseSecondOneofMember(message: ReflectMessage, fields: readonly DescField[], name: string): void {
  let within = message;
  for (const field of fields) {
    const other = otherOneofMember(within.message, field);
    if (other !== undefined) throw new BadInput("query", name, `${other.jsonName} of the same oneof is given too`);
    if (field.fieldKind !== "message" || !within.isSet(field)) return;
    within = within.get(field);
  }
}
