import { create, createFileRegistry, maximumEdition, minimumEdition } from "@bufbuild/protobuf";
import {
  type CodeGeneratorRequest,
  CodeGeneratorResponse_Feature,
  CodeGeneratorResponseSchema,
  FileDescriptorSetSchema,
} from "@bufbuild/protobuf/wkt";
import { describeRoutes } from "../http/index.ts";
import { describeProblem } from "../protoc-gen-http/problem.ts";
import { describeServices } from "./document.ts";
import { loadOverlay, type Overlay } from "./overlay.ts";

/**
 * The buf plugin: writes `openapi.json`, one OpenAPI 3.1 document for all services with google.api.http annotations.
 * Its option `overlay=<path>` names a JSON file or a module whose patches are applied to the document.
 */
export const protocGenOpenapi = {
  name: "protoc-gen-http-openapi",
  version: "v0.1.0",
  run(request: CodeGeneratorRequest) {
    const overlay = parseOptions(request.parameter);
    const registry = createFileRegistry(create(FileDescriptorSetSchema, { file: request.protoFile }));
    const services = request.fileToGenerate.flatMap((name) => registry.getFile(name)?.services ?? []);
    const { tables, problems } = describeRoutes(services);
    if (problems.length > 0) throw new Error(problems.map(describeProblem).join("\n"));
    const document = describeServices(
      tables.filter((table) => table.routes.length > 0),
      overlay,
    );
    return create(CodeGeneratorResponseSchema, {
      supportedFeatures: BigInt(
        CodeGeneratorResponse_Feature.PROTO3_OPTIONAL | CodeGeneratorResponse_Feature.SUPPORTS_EDITIONS,
      ),
      minimumEdition,
      maximumEdition,
      file: [{ name: "openapi.json", content: `${JSON.stringify(document, undefined, 2)}\n` }],
    });
  },
};

function parseOptions(parameter: string): Overlay {
  let overlay: Overlay = {};
  for (const option of parameter.split(",").filter(Boolean)) {
    const equals = option.indexOf("=");
    const value = option.slice(equals + 1);
    if (option.slice(0, equals) !== "overlay" || value === "") throw new Error(`unknown option "${option}"`);
    overlay = loadOverlay(value);
  }
  return overlay;
}
