/** Annotations that cannot become routes: both plugins, run by buf, and the runtime skip the same ones. */
import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import { createFileRegistry, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createRoutes, RouteError } from "../../src/connect-http-routes/index.ts";
import { BUF } from "../support/buf.ts";
import { protoFile } from "./compile.ts";

const RPCS = `rpc Upload(stream Book) returns (Book) { option (google.api.http) = {post: "/v1/upload"}; }
rpc Put(Book) returns (Book) { option (google.api.http) = {put: "/v1/{name}" body: "nothing" additional_bindings {put: "/v2/{name}" body: "*"}}; }
rpc Get(Book) returns (Book) { option (google.api.http) = {get: "/v1/{name}"}; }`;

let directory = "";
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "protoc-gen-skip-"));
  cpSync("proto/google", join(directory, "google"), { recursive: true });
  writeFileSync(join(directory, "skip.proto"), protoFile("skip", RPCS));
});
afterAll(() => rmSync(directory, { recursive: true }));

function generate(plugin: string, option: string) {
  const out = join(directory, "gen");
  const plugins = [{ local: [process.execPath, `src/${plugin}/main.ts`], out, strategy: "all", opt: option }];
  const template = JSON.stringify({ version: "v2", plugins });
  const path = join(directory, "skip.proto");
  return spawnSync(BUF, ["generate", directory, "--template", template, "--path", path], { encoding: "utf8" });
}

const read = (name: string) => readFileSync(join(directory, "gen", name), "utf8");

describe("an annotation that cannot be mapped", () => {
  test("is a warning of protoc-gen-connect-http, and its route is skipped", () => {
    const { status, stderr } = generate("protoc-gen-connect-http", "target=ts");
    expect(status, stderr).toBe(0);
    expect(stderr).toMatch(/warning: skip\.proto:\d+:\d+: rpc Upload: a request stream needs a body .*skipped/);
    expect(stderr).toMatch(/warning: skip\.proto:\d+:\d+: rpc Put: .*no field "nothing"/);
    const templates = [...read("skip_http.ts").matchAll(/template: "(.*)"/g)].map(([, template]) => template);
    expect(templates).toEqual(["/v2/{name}", "/v1/{name}"]);
  });

  test("is a warning of protoc-gen-http-openapi, and its operation is left out", () => {
    const { status, stderr } = generate("protoc-gen-http-openapi", "strict=false");
    expect(status, stderr).toBe(0);
    expect(stderr).toMatch(/warning: skip\.proto:\d+:\d+: rpc Upload/);
    expect(Object.keys(JSON.parse(read("openapi.json")).paths)).toEqual(["/v2/{name}", "/v1/{name}"]);
  });

  test.each(["protoc-gen-connect-http", "protoc-gen-http-openapi"])("is an error of %s with strict=true", (plugin) => {
    const { status, stderr } = generate(plugin, "strict=true");
    expect(status).not.toBe(0);
    expect(stderr).toMatch(/skip\.proto:\d+:\d+: rpc Upload/);
    expect(stderr).toMatch(/rpc Put/);
  });

  test("is a warning of createRoutes, an error if strict, and printed without descriptors", () => {
    const image = spawnSync(BUF, ["build", directory, "--as-file-descriptor-set", "-o", "-"]).stdout;
    const service = createFileRegistry(fromBinary(FileDescriptorSetSchema, image)).getService("skip.Library");
    if (service === undefined) throw new Error("no service");
    const warnings: string[] = [];
    const table = createRoutes(service, { onWarning: (warning) => warnings.push(warning) });
    expect(table.routes.map(({ template }) => template)).toEqual(["/v2/{name}", "/v1/{name}"]);
    expect(warnings).toEqual([
      expect.stringContaining("skip.Library.Upload: a request stream needs a body"),
      expect.stringContaining('skip.Library.Put: message skip.Book has no field "nothing"'),
    ]);
    let error: unknown;
    try {
      createRoutes(service, { strict: true });
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toBeInstanceOf(RouteError);
    expect((error as RouteError).problems).toHaveLength(2);
    expect(inspect(error, { depth: 20 }).length).toBeLessThan(2_000);
  });
});
