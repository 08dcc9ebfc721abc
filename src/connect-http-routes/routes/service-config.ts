import { fromJson, type JsonValue } from "@bufbuild/protobuf";
import { type HttpRule, HttpSchema } from "../../../gen/google/api/http_pb.ts";

/** Rules outside the .proto files: the `http` section of a google.api.Service. They replace annotations. */
export interface ServiceConfig {
  /** Rules by the full name of the method, `package.Service.Method`. */
  readonly rules: ReadonlyMap<string, HttpRule>;
  /** Whether escapes in multi-segment variables are all decoded (`fully_decode_reserved_expansion`). */
  readonly decodeAll: boolean;
}

/**
 * Reads a service config that has been parsed from YAML or JSON. Other sections than `http` are ignored.
 * @throws Error if the `http` section is not a google.api.Http, or if a selector is missing or given twice
 */
export function parseServiceConfig(config: JsonValue): ServiceConfig {
  if (typeof config !== "object" || config === null || Array.isArray(config)) {
    throw new Error("a service config is an object");
  }
  const http = fromJson(HttpSchema, config.http ?? {});
  const rules = new Map<string, HttpRule>();
  for (const rule of http.rules) {
    const { selector } = rule;
    if (selector === "") throw new Error("a rule of the service config has no selector");
    if (rules.has(selector)) throw new Error(`the service config has two rules for ${selector}`);
    rules.set(selector, rule);
  }
  return { rules, decodeAll: http.fullyDecodeReservedExpansion };
}
