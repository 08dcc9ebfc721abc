/** The options of the plugin, among them overlays: documents that replace or add parts. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { afterAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { describeText, generated, service } from "./describe.ts";
import { operation } from "./document.ts";

test("failures are google.rpc.Status, unless an overlay replaces it", () => {
  const found = describeText(service(`get: "/a"`));
  expect(operation(found, "Shelf_Get").operation.responses.default).toEqual({ $ref: "#/components/responses/default" });
  expect(Object.keys(found.components.schemas)).toContain("google.rpc.Status");
  expect(Object.keys(generated.components.schemas)).not.toContain("google.rpc.Status");
});

test("the services of an excluded package are left out", () => {
  const text = service(`get: "/a"`);
  expect(Object.keys(describeText(text, "exclude=t.v1").paths)).toEqual([]);
  const warnings = vi.spyOn(process.stderr, "write").mockReturnValue(true);
  onTestFinished(() => warnings.mockRestore());
  expect(Object.keys(describeText(text, "exclude=t").paths)).toEqual(["/a"]);
  expect(warnings.mock.calls).toEqual([["warning: exclude=t: no file has the package t\n"]]);
  expect(() => describeText(text, "exclude=")).toThrow("exclude=");
});

test("servers are where the routes are mounted", () => {
  const text = service(`get: "/a"`);
  expect(describeText(text).servers).toEqual([{ url: "/" }]);
  const { servers, paths } = describeText(text, "server=/api,server=https://api.example.com/v2");
  expect(servers).toEqual([{ url: "/api" }, { url: "https://api.example.com/v2" }]);
  expect(Object.keys(paths)).toEqual(["/a"]);
  expect(() => describeText(text, "server=")).toThrow("server=");
});

test("media types that the runtime serves beside JSON are listed, if they are given", () => {
  const text = `service S {
    rpc Get(M) returns (M) { option (google.api.http) = { post: "/a" body: "*" additional_bindings { post: "/b" body: "m" } }; }
    rpc Watch(M) returns (stream M) { option (google.api.http) = { get: "/c" }; } }
    message M { M m = 1; }`;
  const types = ["application/x-protobuf", "application/yaml", "application/x-www-form-urlencoded"];
  const document = describeText(text, types.map((type) => `media_type=${type}`).join(","));
  const schema = { $ref: "#/components/schemas/t.v1.M" };
  const json = { "application/json": { schema } };
  const get = operation(document, "S_Get").operation;
  const withYaml = {
    ...json,
    "application/x-protobuf": { schema: { type: "string", format: "binary" } },
    "application/yaml": { schema },
  };
  expect(get.requestBody?.content).toEqual({ ...withYaml, "application/x-www-form-urlencoded": { schema } });
  expect(get.responses["200"]?.content).toEqual(withYaml);
  expect(operation(document, "S_Get_2").operation.requestBody?.content).toEqual(withYaml);
  expect(Object.keys(operation(document, "S_Watch").operation.responses["200"]?.content ?? {})).toEqual([
    ...["application/x-ndjson", "text/event-stream", "application/json", "application/x-protobuf"],
  ]);
  expect(Object.keys(document.components.responses.default?.content ?? {})).toEqual(Object.keys(withYaml));
  expect(() => describeText(text, "media_type=")).toThrow("media_type=");
});

describe("an overlay", () => {
  const directory = mkdtempSync(join(tmpdir(), "overlay-"));
  afterAll(() => rmSync(directory, { recursive: true, force: true }));
  const overlay = (name: string, text: string) => {
    writeFileSync(join(directory, name), text);
    return `overlay=${relative(process.cwd(), join(directory, name))}`;
  };

  const SCHEMES = { securitySchemes: { key: { type: "apiKey", in: "header", name: "x-api-key" } } };

  test("is merged into the document, into all operations, and into one", () => {
    const patch = {
      document: { info: { title: "Shelves" }, components: { ...SCHEMES, schemas: { "google.rpc.Status": null } } },
      operations: { "*": { security: [{ key: [] }] }, "t.v1.Shelf.Get": { summary: "Mine", tags: null } },
    };
    for (const parameter of [
      overlay("a.json", JSON.stringify(patch)),
      overlay("a.mjs", `export default ${JSON.stringify(patch)}`),
    ]) {
      const document = describeText(service(`get: "/a"`), parameter);
      expect(document.info).toEqual({ title: "Shelves", version: "0.0.0" });
      expect(document.components.schemas).not.toHaveProperty(["google.rpc.Status"]);
      const found = operation(document, "Shelf_Get").operation;
      expect(found).toMatchObject({ security: [{ key: [] }], summary: "Mine" });
      expect(found).not.toHaveProperty("tags");
    }
  });

  test.each([
    ["about an RPC that is not there", `{"operations":{"t.v1.Shelf.Gone":{}}}`, /t\.v1\.Shelf\.Gone/],
    ["with an unknown member", `{"paths":{}}`, /unknown member "paths"/],
    ["that requires what it does not define", `{"operations":{"*":{"security":[{"key":[]}]}}}`, /requires "key"/],
    ["that is no object", `[]`, /not an object/],
  ])("%s is refused", (_, text, message) => {
    // Each overlay has a unique file name, because Node caches modules by name.
    const parameter = overlay(`${text.length}.json`, text);
    expect(() => describeText(service(`get: "/a"`), parameter)).toThrow(message);
  });
});

test("an unknown option is refused", () => {
  expect(() => describeText(service(`get: "/a"`), "target=ts")).toThrow(/unknown option "target=ts"/);
});

test("annotations that cannot be served are refused with their position", () => {
  expect(() => describeText(service(`get: "/v1/{nothing}"`), "strict=true")).toThrow(
    /test\.proto:\d+:\d+: rpc Get: .*nothing/,
  );
});

test("the same files give the same bytes", () => {
  const once = JSON.stringify(describeText(service(`get: "/v1"`)));
  expect(JSON.stringify(describeText(service(`get: "/v1"`)))).toBe(once);
});

test("the version of the document is that of the package", () => {
  const { version } = JSON.parse(readFileSync("package.json", "utf8")) as { readonly version: string };
  expect(generated.info.version).toBe(version);
});
