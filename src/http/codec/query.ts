import type { DescField, DescMessage } from "@bufbuild/protobuf";
import type { ReflectMessage } from "@bufbuild/protobuf/reflect";
import { hasOwnJson, isTextField, isTextMap } from "../routes/field-path.ts";
import { decodeAll, MalformedEscape } from "../routes/percent.ts";
import { BadInput } from "./bad-input.ts";
import { otherOneofMember, setEntryFromText, setFromText, type TextOptions, TextValueError } from "./text-value.ts";

/** Sets the fields of a request message from a query string. */
type QueryReader = (query: string, message: ReflectMessage) => void;

/** Whether parameters that name no field are refused (400). Listed names are still ignored; `utm_*` lists a prefix. */
export type RefuseUnknownQuery = boolean | { readonly allow: readonly string[] };

/** The query parameters that Google's clients send to every API (cloud.google.com/apis/docs/system-parameters). */
export const SYSTEM_PARAMETERS: readonly string[] = [
  ...["$alt", "$apiVersion", "$callback", "$fields", "$key", "$prettyPrint", "$quotaUser", "$userProject", "$.xgafv"],
  ...["access_token", "alt", "callback", "fields", "key", "oauth_token", "prettyPrint", "quotaUser", "userIp"],
  ...["uploadType", "upload_protocol"],
];

interface QueryOptions {
  readonly refuseUnknown: RefuseUnknownQuery;
  readonly text: TextOptions;
}

/** The resolved name of a parameter. */
interface Target {
  /** The fields, outermost first. */
  readonly fields: readonly DescField[];
  /** The key of a map field, as text. */
  readonly mapKey: string | undefined;
  /** The path of the field in proto names, so that a field that is given twice is detected even if the spellings of its name differ. */
  readonly path: string;
}

/** Creates the decoder of a message's query. @param bound the paths, in proto names, of fields that only path or body can set */
export function createQueryReader(type: DescMessage, bound: readonly string[], options: QueryOptions): QueryReader {
  // Caches resolved names. The cache is bounded because clients choose the names.
  const known = new Map<string, Target>();
  const isRefused = refusal(options.refuseUnknown);

  /** Returns the field that a parameter sets; undefined if the parameter is ignored. @throws BadInput if it is refused */
  function resolve(name: string): Target | undefined {
    const hit = known.get(name);
    if (hit !== undefined) return hit;
    const target = resolveName(type, name, bound);
    if (target === undefined) {
      if (isRefused(name)) throw new BadInput("query", name, "unknown parameter");
    } else if (known.size < 256) known.set(name, target);
    return target;
  }

  return (query, message) => {
    const given = new Set<string>();
    for (const [name, value] of parameters(query)) {
      const target = resolve(name);
      if (target === undefined) continue;
      const { fields, mapKey } = target;
      refuseSecondValue(given, target, name);
      refuseSecondOneofMember(message, fields, name);
      try {
        if (mapKey === undefined) setFromText(message, fields, value, options.text);
        else setEntryFromText(message, fields, mapKey, value, options.text);
      } catch (error) {
        if (error instanceof TextValueError) throw new BadInput("query", name, error.message);
        throw error;
      }
    }
  };
}

function refusal(option: RefuseUnknownQuery): (name: string) => boolean {
  if (typeof option === "boolean") return () => option;
  const names = new Set(option.allow.filter((name) => !name.endsWith("*")));
  const prefixes = option.allow.filter((name) => name.endsWith("*")).map((name) => name.slice(0, -1));
  return (name) => !names.has(name) && !prefixes.some((prefix) => name.startsWith(prefix));
}

/** Refuses a second value of a field that is not repeated. @param given the paths of the fields and map entries that were set before */
function refuseSecondValue(given: Set<string>, { fields, path }: Target, name: string): void {
  if (fields.at(-1)?.fieldKind === "list") return;
  if (given.has(path)) throw new BadInput("query", name, "given more than once");
  given.add(path);
}

/** Splits `application/x-www-form-urlencoded` in order of appearance: `+` is a space, escapes are UTF-8 and well-formed. */
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

/**
 * Resolves a parameter's name: fields by JSON name or proto name, nested ones as `a.b.c`, entries of a map as `a[key]`.
 * @returns undefined if the name is unknown, or if path or body bind the field
 * @throws BadInput if the name starts with a known field but leads to nothing that a query can set
 */
function resolveName(type: DescMessage, name: string, bound: readonly string[]): Target | undefined {
  const bracket = name.endsWith("]") ? name.indexOf("[") : -1;
  const mapKey = bracket > 0 ? name.slice(bracket + 1, -1) : undefined;
  const parts = (mapKey === undefined ? name : name.slice(0, bracket)).split(".");
  const invalid = (reason: string) => new BadInput("query", name, reason);
  const fields: DescField[] = [];
  let within: DescMessage | undefined = type;
  let path = "";
  for (const part of parts.slice(0, MAX_DEPTH)) {
    const last: DescField | undefined = fields.at(-1);
    if (last !== undefined && within === undefined) throw invalid(`${last.name} has no fields that a query can set`);
    const field: DescField | undefined = within && fieldByEitherName(within, part);
    if (field === undefined) {
      if (last === undefined) return undefined;
      throw invalid(`message ${within?.typeName} has no field "${part}"`);
    }
    fields.push(field);
    path += path === "" ? field.name : `.${field.name}`;
    if (bound.includes(path)) return undefined;
    within = field.fieldKind === "message" && !hasOwnJson(field.message) ? field.message : undefined;
  }
  const last = fields.at(-1);
  if (last === undefined) return undefined;
  if (parts.length > MAX_DEPTH) throw invalid("nested too deeply");
  // Path or body bind a field within this message, so the query cannot set the message.
  if (bound.some((other) => other.startsWith(`${path}.`))) return undefined;
  if (mapKey !== undefined && last.fieldKind !== "map") throw invalid(`${last.name} is not a map`);
  if (mapKey === undefined ? !isTextField(last) : !isTextMap(last))
    throw invalid("this field cannot be given in a query");
  return { fields, mapKey, path: mapKey === undefined ? path : `${path}[${mapKey}]` };
}

function fieldByEitherName(type: DescMessage, name: string): DescField | undefined {
  return type.fields.find((field) => field.jsonName === name) ?? type.fields.find((field) => field.name === name);
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
