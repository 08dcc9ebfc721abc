/** Descriptors from other tools, and the services in them that the gateway serves. */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { clearField, createFileRegistry, type DescService, fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  type DescriptorProto,
  FieldDescriptorProtoSchema,
  type FileDescriptorSet,
  FileDescriptorSetSchema,
} from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { parseArguments, startGateway } from "../../src/connect-http-gateway/index.ts";
import { createRoutes, readDescriptorSet } from "../../src/connect-http-routes/index.ts";

const SOURCES = "test/connect-http-routes/support/grpcio";
const directory = mkdtempSync(join(tmpdir(), "descriptors-"));
const set = join(directory, "set.binpb");
const stripped = join(directory, "stripped.binpb");
const include = ["-I", SOURCES, "-I", "proto"];
let upstream: string;

beforeAll(async () => {
  const generated = join(directory, "generated");
  mkdirSync(generated);
  const imports = ["google/api/annotations.proto", "google/api/http.proto", "grpc/reflection/v1alpha/reflection.proto"];
  execFileSync("protoc", [
    ...include,
    `--python_out=${generated}`,
    `--grpc_python_out=${generated}`,
    "--plugin=protoc-gen-grpc_python=/usr/bin/grpc_python_plugin",
    "shelf.proto",
    ...imports,
  ]);
  execFileSync("protoc", [...include, "--include_imports", `--descriptor_set_out=${set}`, "shelf.proto"]);
  writeFileSync(stripped, toBinary(FileDescriptorSetSchema, withoutJsonNames(readFileSync(set))));
  // Only Debian's Python has the package python3-grpcio.
  const server = spawn("/usr/bin/python3", [`${SOURCES}/server.py`, generated], { stdio: ["pipe", "pipe", "inherit"] });
  const exited = once(server, "exit");
  const lines = createInterface({ input: server.stdout });
  const port = await Promise.race([once(lines, "line"), exited.then(() => Promise.reject(new Error("no server")))]);
  upstream = `http://127.0.0.1:${String(port)}`;
  return async () => {
    server.stdin.end();
    await exited;
  };
});
afterAll(() => rmSync(directory, { recursive: true }));

/** Removes the JSON names that equal the default, as protoc does in descriptors for Python, Java, C#, C++ and PHP. */
function withoutJsonNames(bytes: Uint8Array): FileDescriptorSet {
  const files = fromBinary(FileDescriptorSetSchema, bytes);
  const strip = ({ field, nestedType }: DescriptorProto) => {
    for (const one of field) if (one.jsonName !== "byHand") clearField(one, FieldDescriptorProtoSchema.field.jsonName);
    nestedType.forEach(strip);
  };
  for (const { messageType } of files.file) messageType.forEach(strip);
  return files;
}

async function startFront(...args: string[]): Promise<string> {
  const all = ["--upstream", upstream, "--listen", "127.0.0.1:0", ...args];
  const gateway = await startGateway(parseArguments(all), () => {});
  onTestFinished(() => gateway.close());
  return `http://127.0.0.1:${gateway.port}`;
}

const BOOK = {
  bookName: "books/a",
  pageCount: "9007199254740993",
  otherAuthors: [{ givenName: "Ann" }, { givenName: "Bob" }],
  copiesByCity: { Paris: 1 },
  hardCover2nd: "blue",
  byHand: "x",
};

const ONE = ["--service", "shelf.v1.ShelfService"];
const sources = () =>
  [
    ["the reflection of grpcio", ["--reflection"]],
    ["a set of protoc", ["--descriptors", set]],
    ["a set without json_name", ["--descriptors", stripped]],
  ] as const;

describe("a gateway in front of grpcio", () => {
  test.each(sources())("reads and writes every field under its name, by %s", async (_, args) => {
    const origin = await startFront(...args, ...ONE);
    const body = JSON.stringify(BOOK);
    const headers = { "content-type": "application/json" };
    const echoed = await fetch(`${origin}/v1/books/a`, { method: "POST", headers, body });
    expect([echoed.status, await echoed.json()]).toEqual([200, BOOK]);
    const query = "pageCount=3&copies_by_city[Paris]=2&paperBack=red";
    const found = await fetch(`${origin}/v1/books/a?${query}`);
    expect([found.status, await found.json()]).toEqual([
      200,
      { bookName: "books/a", pageCount: "3", copiesByCity: { Paris: 2 }, paperBack: "red" },
    ]);
  });
});

describe("one route in two services", () => {
  test("is refused, with the option that selects services", async () => {
    await expect(startFront("--descriptors", set)).rejects.toThrow(
      /LegacyShelfService\.EchoBook .* is the same route as shelf\.v1\.ShelfService\.EchoBook[\s\S]*--service/,
    );
  });

  test("is that of the selected service", async () => {
    const legacy = await startFront("--descriptors", set, "--service", "shelf.v1.LegacyShelfService");
    const post = await fetch(`${legacy}/v1/books/a`, { method: "POST", body: "{}" });
    expect([post.status, (await fetch(`${legacy}/v1/books/a`)).status]).toEqual([405, 200]);
  });

  test("cannot be selected by the name of a service that does not exist", async () => {
    await expect(startFront("--descriptors", set, ...ONE, "--service", "shelf.v1.Shelf")).rejects.toThrow(
      "--service: there is no service shelf.v1.Shelf; there are shelf.v1.ShelfService, shelf.v1.LegacyShelfService",
    );
  });
});

describe("descriptors that are read at run time", () => {
  test("have the names that protoc gives, whether the set has names or not", () => {
    const fields = (file: string) =>
      readDescriptorSet(readFileSync(file))
        .getMessage("shelf.v1.Book")
        ?.fields.map(({ jsonName }) => jsonName);
    expect(fields(stripped)).toEqual(fields(set));
  });

  test("are refused without them", () => {
    const registry = createFileRegistry(withoutJsonNames(readFileSync(set)));
    const service = registry.getService("shelf.v1.ShelfService") as DescService;
    expect(() => createRoutes(service)).toThrow("readDescriptorSet");
  });
});
