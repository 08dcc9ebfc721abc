/** Compiles .proto texts with rules. */
import { create, createFileRegistry, type DescMessage, type DescService } from "@bufbuild/protobuf";
import { prepareRules } from "../../../../src/service/api/rules/violations.ts";
import { buildProtos, testProto } from "../../../protoc-gen-http-openapi/describe.ts";

/**
 * @param text the text of a .proto file with a service `S`
 * @param more further .proto files by name
 */
export function compileService(text: string, more: Readonly<Record<string, string>> = {}): DescService {
  const registry = createFileRegistry(buildProtos({ ...more, "test.proto": testProto(text) }));
  const service = registry.getService("t.v1.S");
  if (service === undefined) throw new Error("no service t.v1.S");
  return service;
}

/** Returns the reason why the rules of a request are refused, or undefined if they are not. */
export function faultOf(type: DescMessage): string | undefined {
  try {
    prepareRules(type, 1)(create(type));
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}
