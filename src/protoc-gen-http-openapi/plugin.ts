import { create, createFileRegistry, maximumEdition, minimumEdition } from "@bufbuild/protobuf";
import {
  type CodeGeneratorRequest,
  CodeGeneratorResponse_Feature,
  CodeGeneratorResponseSchema,
  FileDescriptorSetSchema,
} from "@bufbuild/protobuf/wkt";
import { describeRoutes } from "connect-http-routes/descriptors";
import { PLUGIN_VERSION, parseBoolean } from "../protoc-gen-connect-http/options.ts";
import { reportProblems } from "../protoc-gen-connect-http/problem.ts";
import { type DocumentOptions, describeServices, PROBLEM } from "./document.ts";
import { type HandlerOptions, loadHandlerOptions } from "./handler-options.ts";
import { loadOverlay, type Overlay } from "./overlay.ts";
import { checkStrategy } from "./strategy.ts";

/**
 * The buf plugin. It writes `openapi.json`, one OpenAPI 3.1 document for all services with google.api.http annotations. Options:
 * `overlay=<path>` names a JSON file or a module whose patches are applied to the document.
 * `strict=true` makes annotations that cannot be mapped errors instead of warnings.
 * `options=<path>` names a JSON file or a module with the options of the handler that serves the routes.
 * `closed_enums=true` leaves out the numbers of values that a later version may add.
 * `problem_details=true` is for a runtime with `failureEncoder: problemEncoder()`: failures are problem details (RFC 9457).
 * `media_type=<type>`, any number of times, names a media type that the runtime accepts and sends beside JSON.
 * `server=<url>`, any number of times, names a URL where the routes are served.
 * `exclude=<package>`, any number of times, leaves out the services of a package, such as those of another listener.
 */
export const protocGenOpenapi = {
  name: "protoc-gen-http-openapi",
  version: PLUGIN_VERSION,
  run(request: CodeGeneratorRequest) {
    const { overlay, strict, excluded, ...options } = parseOptions(request.parameter);
    checkStrategy(request.fileToGenerate);
    const registry = createFileRegistry(create(FileDescriptorSetSchema, { file: request.protoFile }));
    const services = request.fileToGenerate.flatMap((name) => registry.getFile(name)?.services ?? []);
    const { tables, problems } = describeRoutes(services);
    reportProblems(problems, strict);
    warnOfUnknown(excluded, request);
    const document = describeServices(
      tables.filter(({ service, routes }) => routes.length > 0 && !excluded.includes(service.file.proto.package)),
      overlay,
      options,
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

/** A misspelt name would leave the services of the package in a document that others read. */
function warnOfUnknown(excluded: readonly string[], { protoFile }: CodeGeneratorRequest): void {
  const packages = new Set(protoFile.map((file) => file.package));
  for (const name of excluded)
    if (!packages.has(name)) process.stderr.write(`warning: exclude=${name}: no file has the package ${name}\n`);
}

interface Options extends DocumentOptions {
  readonly overlay: Overlay;
  readonly strict: boolean;
  readonly excluded: readonly string[];
}

function parseOptions(parameter: string): Options {
  let overlay: Overlay = {};
  let strict = false;
  let handler: HandlerOptions | undefined;
  let closedEnums = false;
  const mediaTypes: string[] = [];
  const excluded: string[] = [];
  const servers: string[] = [];
  let problems = false;
  for (const option of parameter.split(",").filter(Boolean)) {
    const [key, ...rest] = option.split("=");
    const value = rest.join("=");
    if (key === "overlay" && value !== "") overlay = loadOverlay(value);
    else if (key === "strict") strict = parseBoolean(key, value);
    else if (key === "problem_details") problems = parseBoolean(key, value);
    else if (key === "options" && value !== "") handler = loadHandlerOptions(value);
    else if (key === "closed_enums") closedEnums = parseBoolean(key, value);
    else if (key === "media_type" && value !== "") mediaTypes.push(value);
    else if (key === "exclude" && value !== "") excluded.push(value);
    else if (key === "server" && value !== "") servers.push(value);
    else throw new Error(`unknown option "${option}"`);
  }
  if (handler !== undefined && (problems || mediaTypes.length > 0)) {
    throw new Error("with options=, the module says what problem_details= and media_type= would");
  }
  return {
    overlay,
    strict,
    excluded,
    handler: handler ?? { failureEncoder: problems ? { contentType: PROBLEM } : undefined },
    closedEnums,
    mediaTypes,
    ...(servers.length > 0 && { servers }),
  };
}
