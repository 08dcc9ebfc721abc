/** Compiles the rules of .proto texts, as the plugin does. */
import { createFileRegistry, type DescService } from "@bufbuild/protobuf";
import type { Rules } from "../../../src/service/api/rules/model.ts";
import { describeRules } from "../../../src/service/protoc-gen-rules/describe.ts";
import { buildProtos, testProto } from "../../protoc-gen-http-openapi/describe.ts";

type Described = { readonly service: DescService; readonly rules: Rules; readonly faults: readonly string[] };

/**
 * @param text the text of a .proto file with a service `S`
 * @param more further .proto files by name
 */
export function describeText(text: string, more: Readonly<Record<string, string>> = {}): Described {
  const registry = createFileRegistry(buildProtos({ ...more, "test.proto": testProto(text) }));
  const service = registry.getService("t.v1.S");
  if (service === undefined) throw new Error("no service t.v1.S");
  const faults: string[] = [];
  return { service, rules: describeRules(service, faults), faults };
}
