import type { DescField, DescMessage } from "@bufbuild/protobuf";
import type { ReflectMessage } from "@bufbuild/protobuf/reflect";
import type { RefuseUnknownQuery } from "../routes/model.ts";
import { decodeAll, MalformedEscape } from "../routes/percent.ts";
import { BadInput } from "./bad-input.ts";
import { resolveName, type Target } from "./query-names.ts";
import { otherOneofMember, setEntryFromText, setFromText, type TextOptions, TextValueError } from "./text-value.ts";

/** Sets the fields of a request message from a query string. */
type QueryReader = (query: string, message: ReflectMessage) => void;

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

/** Creates the decoder of a message's query. @param bound the paths, in proto names, of fields that only path or body can set */
export function createQueryReader(type: DescMessage, bound: readonly string[], options: QueryOptions): QueryReader {
  // Caches resolved names. The cache is bounded because clients choose the names.
  const known = new Map<string, Target>();
  const isRefused = refusedBy(options.refuseUnknown);

  /** Returns the field that a parameter sets; undefined if the parameter is ignored. @throws BadInput if it is refused */
  function resolve(name: string): Target | undefined {
    const hit = known.get(name);
    if (hit !== undefined) return hit;
    const target = resolveName(type, name, bound);
    if (target === undefined) {
      if (isRefused(name)) throw new BadInput("query", name, "unknown parameter");
      return undefined;
    }
    if ("reason" in target) throw new BadInput("query", name, target.reason);
    if (known.size < 256) known.set(name, target);
    return target;
  }

  return (query, message) => {
    const given = new Set<string>();
    for (const [name, value] of parameters(query)) {
      const target = resolve(name);
      if (target === undefined) continue;
      const { fields, mapKey } = target;
      requireFirstValue(given, target, name);
      requireFirstOneofMember(message, fields, name);
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

function refusedBy(option: RefuseUnknownQuery): (name: string) => boolean {
  if (typeof option === "boolean") return () => option;
  const names = new Set(option.allow.filter((name) => !name.endsWith("*")));
  const prefixes = option.allow.filter((name) => name.endsWith("*")).map((name) => name.slice(0, -1));
  return (name) => !names.has(name) && !prefixes.some((prefix) => name.startsWith(prefix));
}

/**
 * @param given the paths of the fields and map entries that were set before
 * @throws BadInput for a second value of a field that is not repeated
 */
function requireFirstValue(given: Set<string>, { fields, path }: Target, name: string): void {
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

function requireFirstOneofMember(message: ReflectMessage, fields: readonly DescField[], name: string): void {
  let within = message;
  for (const field of fields) {
    const other = otherOneofMember(within.message, field);
    if (other !== undefined) throw new BadInput("query", name, `${other.jsonName} of the same oneof is given too`);
    if (field.fieldKind !== "message" || !within.isSet(field)) return;
    within = within.get(field);
  }
}
