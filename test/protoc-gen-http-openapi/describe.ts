/** Runs the plugin on .proto files as buf would. */
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { create, createFileRegistry, type FileRegistry, fromBinary } from "@bufbuild/protobuf";
import { CodeGeneratorRequestSchema, type FileDescriptorSet, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { protocGenOpenapi } from "../../src/protoc-gen-http-openapi/plugin.ts";
import { BUF } from "../support/buf.ts";
import { type Document, operation, type Parameter } from "./document.ts";

const ROOT = join(import.meta.dirname, "../..");

/** Writes .proto files to a directory, and returns their descriptors. */
function buildDirectory(input: string): FileDescriptorSet {
  const built = spawnSync(BUF, ["build", input, "--as-file-descriptor-set", "-o", "-"], {
    cwd: ROOT,
    maxBuffer: 64 * 1024 * 1024,
  });
  if (built.status !== 0) throw new Error(built.stderr.toString());
  return fromBinary(FileDescriptorSetSchema, built.stdout);
}

/** @param input a directory of this repository with .proto files */
export function describeDirectory(input: string, parameter = ""): Document {
  return describeFiles(buildDirectory(input), parameter);
}

function describeFiles({ file }: FileDescriptorSet, parameter: string): Document {
  // The directory relay/ tests streams, whose responses OpenAPI cannot describe, and legacy/ another service.
  const fileToGenerate = file.map(({ name }) => name).filter((name) => !/^(?:google|legacy|relay)\//.test(name));
  const request = create(CodeGeneratorRequestSchema, { protoFile: file, fileToGenerate, parameter });
  const [generated, ...more] = protocGenOpenapi.run(request).file;
  if (generated === undefined || more.length > 0 || generated.name !== "openapi.json") throw new Error("one file");
  return JSON.parse(generated.content) as Document;
}

/** @param sources .proto files by name; google/api and buf/validate can be imported */
export function describeProtos(sources: Readonly<Record<string, string>>, parameter = ""): Document {
  return describeFiles(buildProtos(sources), parameter);
}

/** Returns the descriptors of .proto files, with the files of google/api and buf/validate added. */
export function buildProtos(sources: Readonly<Record<string, string>>): FileDescriptorSet {
  const directory = mkdtempSync(join(tmpdir(), "openapi-"));
  try {
    for (const name of ["google", "buf"]) cpSync(join(ROOT, "proto", name), join(directory, name), { recursive: true });
    for (const [name, text] of Object.entries(sources)) {
      mkdirSync(dirname(join(directory, name)), { recursive: true });
      writeFileSync(join(directory, name), text);
    }
    return buildDirectory(directory);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Returns a file `test.proto` of the package `t.v1` with the imports that the text needs. */
export function describeText(text: string, parameter = ""): Document {
  return describeProtos({ "test.proto": testProto(text) }, parameter);
}

/** Returns the OpenAPI document of a file `test.proto` with this text, and its types. */
export function compileText(text: string): { document: Document; registry: FileRegistry } {
  const set = buildProtos({ "test.proto": testProto(text) });
  return { document: describeFiles(set, ""), registry: createFileRegistry(set) };
}

/** Returns a file of the package `t.v1` with the imports that the text needs. */
export function testProto(text: string): string {
  const imports = [
    "google/api/annotations",
    "google/api/httpbody",
    "google/api/field_behavior",
    "google/api/field_info",
    "buf/validate/validate",
  ];
  for (const known of ["timestamp", "duration", "field_mask", "struct", "any", "empty", "wrappers"]) {
    imports.push(`google/protobuf/${known}`);
  }
  const head = ['syntax = "proto3";', "package t.v1;", ...imports.map((name) => `import "${name}.proto";`)];
  return `${head.join("\n")}\n${text}`;
}

export const generated = JSON.parse(readFileSync(join(ROOT, "gen/openapi.json"), "utf8")) as Document;

/** Returns a file with one RPC with one annotation, on a message with a few fields. */
export const service = (option: string, fields = "string name = 1; string other = 2;", comment = "") => `
  ${comment}
  service Shelf { rpc Get(M) returns (M) { option (google.api.http) = {${option}}; } }
  message M { ${fields} message Inner { string id = 1; Deep deep = 2; } message Deep { int64 n = 1; M m = 2; } }`;

/** Describes the file that `service` makes, and returns its only operation. */
export const get = (option: string, fields?: string, parameter?: string) =>
  operation(describeText(service(option, fields), parameter), "Shelf_Get");

export const parameterNames = (parameters: readonly Parameter[] | undefined, place: "path" | "query") =>
  (parameters ?? []).filter((parameter) => parameter.in === place).map((parameter) => parameter.name);
