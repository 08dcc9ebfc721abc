import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create, fromBinary } from "@bufbuild/protobuf";
import { CodeGeneratorRequestSchema, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { protocGenHttp } from "../../src/protoc-gen-connect-http/plugin.ts";
import { BUF } from "../support/buf.ts";

export type Generate = (files: readonly string[], parameter?: string) => { name: string; content: string }[];

/**
 * Compiles .proto texts, all at once because starting the compiler is slow.
 * @param sources the texts by file name
 * @returns a function that runs the plugin on some of the files
 */
export function compile(sources: Readonly<Record<string, string>>): Generate {
  const directory = mkdtempSync(join(tmpdir(), "protoc-gen-http-"));
  try {
    mkdirSync(join(directory, "google/api"), { recursive: true });
    cpSync("proto/google/api", join(directory, "google/api"), { recursive: true });
    for (const [name, text] of Object.entries(sources)) writeFileSync(join(directory, name), text);
    const image = execFileSync(BUF, ["build", directory, "--as-file-descriptor-set", "-o", "-"], {
      maxBuffer: 1 << 26,
    });
    const { file: protoFile } = fromBinary(FileDescriptorSetSchema, image);
    return (fileToGenerate, parameter = "target=ts,import_extension=ts") => {
      const request = create(CodeGeneratorRequestSchema, { fileToGenerate: [...fileToGenerate], protoFile, parameter });
      return protocGenHttp.run(request).file.map(({ name = "", content = "" }) => ({ name, content }));
    };
  } finally {
    rmSync(directory, { recursive: true });
  }
}

/** Returns a .proto file with these RPCs in one service, and with messages for them. */
export function protoFile(name: string, rpcs: string): string {
  return `syntax = "proto3";
package ${name};
import "google/api/annotations.proto";
import "google/protobuf/struct.proto";
import "google/protobuf/timestamp.proto";
message Book {
  string name = 1;
  Author author = 2;
  repeated string tags = 3;
  map<string, string> labels = 4;
  repeated Author others = 5;
  google.protobuf.Timestamp at = 6;
  google.protobuf.Value value = 7;
  oneof kind { string fiction = 8; int32 shelf = 9; }
  Book parent = 10;
}
message Author { string name = 1; oneof kind { string pen = 2; string real = 3; } }
service Library {
${rpcs}
}
`;
}
