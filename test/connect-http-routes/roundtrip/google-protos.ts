/** The services that Google publishes (npm: google-proto-files, of test/dependencies/tools). */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createFileRegistry, type FileRegistry, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";

const ROOT = join(import.meta.dirname, "../../dependencies/tools/node_modules/google-proto-files");

/** Returns all directories except google/protobuf, which contains tests of the compiler. */
export function allDirectories(): string[] {
  const below = readdirSync(join(ROOT, "google")).filter((name) => name !== "protobuf" && !name.includes("."));
  return ["grafeas", ...below.map((name) => `google/${name}`)];
}

/** @param directories directories of the package, such as `google/pubsub` */
export function loadGoogleProtos(directories: readonly string[]): FileRegistry {
  const temporary = mkdtempSync(join(tmpdir(), "google-protos-"));
  try {
    const set = join(temporary, "set.binpb");
    const paths = directories.flatMap((directory) => ["--path", join(ROOT, directory)]);
    const args = ["build", ROOT, "--as-file-descriptor-set", "--exclude-source-info", ...paths, "-o", set];
    const built = spawnSync("node_modules/.bin/buf", args);
    if (built.status !== 0) throw new Error(built.stderr.toString());
    return createFileRegistry(fromBinary(FileDescriptorSetSchema, readFileSync(set)));
  } finally {
    rmSync(temporary, { recursive: true });
  }
}
