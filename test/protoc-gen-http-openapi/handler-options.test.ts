/** The document follows the options of the handler, which both read from one module. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { createFetchHandler } from "../../src/connect-http-routes/index.ts";
import { RichServiceRoutes } from "../connect-http-routes/gen/rich/v1/rich_http.ts";
import { richRoutes } from "../connect-http-routes/support/rich-service.ts";
import { openFetch } from "../connect-http-routes/support/servers.ts";
import { describeDirectory, describeText } from "./describe.ts";
import { operation, schemaChecker } from "./document.ts";
import options from "./fixtures/handler-options.ts";

const OPTIONS = "options=test/protoc-gen-http-openapi/fixtures/handler-options.ts";
const SHOP = `
  service Shop {
    rpc Get(Query) returns (Item) { option (google.api.http) = {get: "/v1/{item_name=**}"}; }
    rpc Put(Item) returns (Item) { option (google.api.http) = {patch: "/v1/items" body: "*"}; }
  }
  message Query { string item_name = 1; Kind of_kind = 2; }
  message Item { string etag = 1; Kind the_kind = 2; Kind known_kind = 3 [(buf.validate.field).enum.defined_only = true];
    google.api.HttpBody picture = 6; repeated bytes pages = 7;
    oneof price { int32 in_cents = 4; string in_words = 5; } }
  enum Kind { KIND_UNSPECIFIED = 0; KIND_BOOK = 1; }`;

const directory = mkdtempSync(join(tmpdir(), "handler-options-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));
const written = (name: string, text: string): string => {
  writeFileSync(join(directory, name), text);
  return `options=${join(directory, name)}`;
};

test("names, enums, media types, failures, prefix, decoding and tags are those of the handler", () => {
  const document = describeText(SHOP, OPTIONS);
  const { operation: get } = operation(document, "Shop_Get");
  expect(document.servers).toEqual([{ url: "/api" }]);
  expect(document.components.responses.default?.content).toHaveProperty(["application/problem+json"]);
  expect(get.parameters?.map(({ name }) => name)).toEqual(["item_name", "of_kind", "If-None-Match"]);
  expect(get.parameters?.[0]?.description).not.toContain("multiSegmentDecoding");
  expect(Object.keys(get.responses)).toEqual(["200", "304", "default"]);
  expect(get.responses[200]?.headers).toHaveProperty("ETag");
  const { operation: put } = operation(document, "Shop_Put");
  expect(put.responses[200]?.headers).toHaveProperty("ETag");
  expect(Object.keys(put.responses)).toEqual(["200", "default"]);
  expect(Object.keys(put.requestBody?.content ?? {})).toEqual([
    "application/json",
    "application/x-protobuf",
    "application/x-www-form-urlencoded",
    "multipart/form-data",
  ]);
  expect(put.requestBody?.content["multipart/form-data"]?.schema?.properties).toMatchObject({
    etag: { type: "string" },
    picture: { type: "string", format: "binary" },
    pages: { type: "array", items: { type: "string", format: "binary" } },
  });
  expect(document.components.schemas["t.v1.Item"]).toMatchObject({
    properties: { known_kind: { enum: [0, 1] } },
    not: { required: ["in_cents", "in_words"] },
  });
  expect(document.components.schemas["t.v1.Kind"]).toEqual({
    description: "- `0`: `KIND_UNSPECIFIED`\n- `1`: `KIND_BOOK`",
    type: "integer",
    format: "int32",
    minimum: -(2 ** 31),
    maximum: 2 ** 31 - 1,
  });
});

test.each([
  ["the options of the module", OPTIONS, options],
  ["no options", "", {}],
] as const)("with %s, what the handler sends is what the document says", async (_, parameter, configured) => {
  const document = describeDirectory("test/connect-http-routes/proto", parameter);
  const { operation: echo } = operation(document, "RichService_Echo");
  const handler = createFetchHandler({ routes: richRoutes, tables: [RichServiceRoutes], ...configured });
  await using listener = openFetch(handler);
  const check = schemaChecker(document);
  const prefix = document.servers[0]?.url.replace(/\/$/, "") ?? "";
  for (const sent of [{}, { enumValue: "COLOR_RED", oneofString: "a" }, { enumValue: 77, int64Value: "5" }]) {
    const body = JSON.stringify(sent);
    const response = await listener.fetchRaw({ method: "POST", target: `${prefix}/v1/echo`, body });
    const json = response.json() as object;
    expect(response.status).toBe(200);
    expect(check(echo.responses[200]?.content?.["application/json"]?.schema ?? { not: {} }, json)).toEqual([]);
    const properties = Object.keys(document.components.schemas["rich.v1.Everything"]?.properties ?? {});
    expect(properties).toEqual(expect.arrayContaining(Object.keys(json)));
  }
});

test("JSON files may have the options, and enums may be closed", () => {
  const parameter = written("handler.json", `{"jsonOptions": {"enumAsInteger": true}}`);
  const kind = (text: string) => describeText(SHOP, text).components.schemas["t.v1.Kind"];
  const numbers = {
    type: "integer",
    format: "int32",
    enum: [0, 1],
    "x-enum-varnames": ["KIND_UNSPECIFIED", "KIND_BOOK"],
  };
  expect(kind(`${parameter},closed_enums=true`)).toMatchObject(numbers);
  expect(kind("closed_enums=true")).toEqual({ type: "string", enum: ["KIND_UNSPECIFIED", "KIND_BOOK"] });
});

test("what cannot be meant is refused", () => {
  expect(() => describeText(SHOP, written("none.json", `{"json_options": {}}`))).toThrow(/has none of the options/);
  expect(() => describeText(SHOP, `${OPTIONS},problem_details=true`)).toThrow(/with options=/);
  const own = written("own.cjs", "exports.failureEncoder = () => ({})");
  expect(() => describeText(SHOP, own)).toThrow(/components\.responses\.default/);
});

test("slashes that a client escapes are named where they are not read as such", () => {
  const [name] = operation(describeText(SHOP), "Shop_Get").operation.parameters ?? [];
  expect(name?.description).toContain('`multiSegmentDecoding: "all"`');
});
