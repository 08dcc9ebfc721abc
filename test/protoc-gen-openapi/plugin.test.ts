/** From annotations to operations, one rule at a time. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { describeProtos, describeText, generated } from "./describe.ts";
import { type Operation, operation, operationsOf, type Parameter } from "./document.ts";

/** One RPC with one annotation, on a message with a few fields. */
const service = (option: string, fields = "string name = 1; string other = 2;", comment = "") => `
  ${comment}
  service Shelf { rpc Get(M) returns (M) { option (google.api.http) = {${option}}; } }
  message M { ${fields} message Inner { string id = 1; Deep deep = 2; } message Deep { int64 n = 1; M m = 2; } }`;

const get = (option: string, fields?: string) => operation(describeText(service(option, fields)), "Shelf_Get");
const names = (parameters: readonly Parameter[] | undefined, place: "path" | "query") =>
  (parameters ?? []).filter((parameter) => parameter.in === place).map((parameter) => parameter.name);

describe("paths", () => {
  const spellings: [template: string, path: string, parameters: string[]][] = [
    ["/v1/{name}", "/v1/{name}", ["name"]],
    ["/v2/{name=*}", "/v2/{name}", ["name"]],
    ["/v3/{name=**}", "/v3/{name}", ["name"]],
    ["/v1/{inner.id}/x", "/v1/{inner.id}/x", ["inner.id"]],
    ["/v1/{name=shelves/*}/x", "/v1/shelves/{name.1}/x", ["name.1"]],
    ["/v1/{name=shelves/*/books/*}:read", "/v1/shelves/{name.1}/books/{name.2}:read", ["name.1", "name.2"]],
    ["/v1/{name=a/**}", "/v1/a/{name.1}", ["name.1"]],
    ["/v1/{name=here}/*", "/v1/here/{segment.1}", ["segment.1"]],
    ["/", "/", []],
    ["/v1/caf%c3%a9", "/v1/caf%C3%A9", []],
  ];
  const [first, ...more] = spellings.map(([template]) => `get: "${template}"`);
  const bindings = [first, ...more.map((option) => `additional_bindings { ${option} }`)].join(" ");
  const document = describeText(service(bindings, "string name = 1; Inner inner = 2;"));

  test.each(spellings)("%s becomes %s", (_, path, parameters) => {
    const found = document.paths[path]?.get as Operation;
    expect(names(found.parameters, "path")).toEqual(parameters);
    for (const parameter of found.parameters ?? []) {
      expect(parameter.required).toBe(parameter.in === "path" ? true : undefined);
    }
  });

  test("the description of a multi-segment variable says that it takes any number of segments", () => {
    const [many] = get(`get: "/v1/{name=**}"`).operation.parameters ?? [];
    const [one] = get(`get: "/v1/{name}"`).operation.parameters ?? [];
    expect(many?.description).toMatch(/any number of path segments/i);
    expect(one?.description ?? "").not.toMatch(/segments/);
  });

  test("templates that match the same paths share one spelling, that of the first", () => {
    const document = describeText(
      service(
        `get: "/v1/{name}/x" additional_bindings { delete: "/v1/{other}/x" }`,
        "string name = 1; string other = 2;",
      ),
    );
    expect(Object.keys(document.paths)).toEqual(["/v1/{name}/x"]);
    const remove = operation(document, "Shelf_Get_2");
    expect(names(remove.operation.parameters, "path")).toEqual(["name"]);
    // It binds the field `other`; `name` is a query parameter.
    expect(names(remove.operation.parameters, "query")).toEqual(["name"]);
  });

  test("templates that OpenAPI would spell alike but match different paths stay apart", () => {
    const document = describeText(service(`get: "/v1/{name}" additional_bindings { get: "/v1/{name=**}" }`));
    expect(Object.keys(document.paths)).toEqual(["/v1/{name}", "/v1/{name_}"]);
  });
});

describe("operations", () => {
  test("every binding is one, with a unique id", () => {
    const document = describeText(
      service(`get: "/a" additional_bindings { get: "/b" } additional_bindings { post: "/a" body: "*" }`),
    );
    expect(
      operationsOf(document).map(({ method, path, operation: { operationId } }) => [method, path, operationId]),
    ).toEqual([
      ["GET", "/a", "Shelf_Get"],
      ["POST", "/a", "Shelf_Get_3"],
      ["GET", "/b", "Shelf_Get_2"],
    ]);
  });

  test("methods outside OpenAPI 3.1 are kept in an extension", () => {
    const document = describeText(
      service(`custom { kind: "REPORT" path: "/a" } additional_bindings { custom { kind: "*" path: "/a" } }
        additional_bindings { custom { kind: "HEAD" path: "/a" } }`),
    );
    expect(Object.keys(document.paths["/a"] ?? {})).toEqual(["x-additionalOperations", "head"]);
    expect(operationsOf(document).map(({ method }) => method)).toEqual(["REPORT", "*", "HEAD"]);
  });

  test("services with the same name keep their packages", () => {
    const one = (name: string) => `syntax = "proto3"; package ${name}; import "google/api/annotations.proto";
      service S { rpc Go(M) returns (M) { option (google.api.http) = { get: "/${name}" }; } } message M {}`;
    const document = describeProtos({ "a.proto": one("a"), "b.proto": one("b") });
    expect(operationsOf(document).map((place) => place.operation.operationId)).toEqual(["a_S_Go", "b_S_Go"]);
    expect(document.tags.map((tag) => tag.name)).toEqual(["a_S", "b_S"]);
  });

  test("a service without annotations is left out", () => {
    const document = describeText(`service Other { rpc Go(M) returns (M); } ${service(`get: "/a"`)}`);
    expect(document.tags.map((tag) => tag.name)).toEqual(["Shelf"]);
  });

  test("deprecated elements are marked", () => {
    const document = describeText(`
      service S {
        rpc Old(M) returns (M) { option deprecated = true; option (google.api.http) = { get: "/old" }; }
        rpc New(M) returns (M) { option (google.api.http) = { get: "/new/{gone}" }; } }
      service Gone { option deprecated = true; rpc Go(D) returns (M) { option (google.api.http) = { get: "/gone" }; } }
      message M { string gone = 1 [deprecated = true]; string here = 2; E e = 3; }
      message D { option deprecated = true; M m = 1 [deprecated = true]; }
      enum E { option deprecated = true; E_ZERO = 0; }`);
    expect(operation(document, "S_Old").operation.deprecated).toBe(true);
    expect(operation(document, "S_New").operation.deprecated).toBeUndefined();
    expect(operation(document, "Gone_Go").operation.deprecated).toBe(true);
    expect(operation(document, "S_New").operation.parameters?.map((p) => p.deprecated)).toEqual([
      true,
      undefined,
      undefined,
    ]);
    expect(operation(document, "Gone_Go").operation.parameters?.every((p) => p.deprecated)).toBe(true);
    expect(document.components.schemas["t.v1.M"]).toMatchObject({ properties: { gone: { deprecated: true } } });
    expect(document.components.schemas["t.v1.E"]).toMatchObject({ deprecated: true });
  });

  test("comments become summaries and descriptions, without internal comments and directives", () => {
    const document = describeText(`
      // Keeps books.
      //
      // On shelves.
      service S {
        // Gets one
        // book.
        //
        // Or none.
        //
        // (-- Do not tell
        // anybody. --)
        // buf:lint:ignore RPC_REQUEST_STANDARD_NAME
        rpc Get(M) returns (M) { option (google.api.http) = { post: "/a/{id}" body: "*" }; }
      }
      // A book.
      message M {
        // Its number.
        string id = 1;
        string title = 2; // Its title.
        string bare = 3;
        Kind kind = 4;
      }
      // What it is.
      enum Kind {
        KIND_UNSPECIFIED = 0;
        // Invented.
        KIND_NOVEL = 1;
      }`);
    expect(document.tags).toEqual([{ name: "S", description: "Keeps books.\n\nOn shelves." }]);
    const get = operation(document, "S_Get").operation;
    expect([get.summary, get.description]).toEqual(["Gets one book", "Or none."]);
    expect(get.parameters?.[0]?.description).toBe("Its number.");
    expect(get.responses["200"]?.description).toBe("A book");
    expect(document.components.schemas["t.v1.M"]).toMatchObject({
      description: "A book.",
      properties: {
        id: { description: "Its number." },
        title: { description: "Its title." },
        bare: { type: "string" },
      },
    });
    expect(document.components.schemas["t.v1.Kind"]).toMatchObject({
      description: "What it is.\n\n- `KIND_NOVEL`: Invented.",
      enum: ["KIND_UNSPECIFIED", "KIND_NOVEL"],
    });
  });
});

describe("the query", () => {
  const fields =
    "string name = 1; Inner inner = 2; repeated int32 page_sizes = 3; map<string, string> m = 4; repeated M ms = 5;";

  test("has the fields that neither path nor body binds, nested ones with dots", () => {
    expect(names(get(`get: "/v1/{name}"`, fields).operation.parameters, "query")).toEqual([
      "inner.id",
      "inner.deep.n",
      "pageSizes",
      "m",
    ]);
    expect(names(get(`post: "/v1" body: "inner"`, fields).operation.parameters, "query")).toEqual([
      "name",
      "pageSizes",
      "m",
    ]);
    expect(names(get(`get: "/v1/{inner.id}"`, fields).operation.parameters, "query")).toEqual([
      "name",
      "inner.deep.n",
      "pageSizes",
      "m",
    ]);
    expect(get(`post: "/v1" body: "*"`, fields).operation.parameters).toBeUndefined();
  });

  test("repeats repeated fields and carries arbitrary JSON as text", () => {
    const { parameters } = get(`get: "/v1"`, "repeated string tags = 1; google.protobuf.Struct any = 2;").operation;
    expect(parameters?.map((parameter) => parameter.schema)).toEqual([
      { type: "array", items: { type: "string" } },
      { type: "string", contentMediaType: "application/json", contentSchema: { type: "object" } },
    ]);
  });

  test("carries maps with the key in brackets, a deepObject", () => {
    const { parameters } = get(`get: "/v1"`, "map<int32, bool> m = 1; map<string, Inner> no = 2;").operation;
    expect(parameters).toEqual([
      expect.objectContaining({
        name: "m",
        style: "deepObject",
        explode: true,
        schema: { type: "object", propertyNames: { pattern: "^-?[0-9]+$" }, additionalProperties: { type: "boolean" } },
      }),
    ]);
  });

  test("names the fields that exclude each other", () => {
    const { parameters } = get(`get: "/v1"`, "oneof x { string a_b = 1; string c = 2; }").operation;
    expect(parameters?.map((parameter) => parameter.description)).toEqual([
      "Not together with `c`.",
      "Not together with `aB`.",
    ]);
  });
});

describe("bodies", () => {
  const json = (schema: object) => ({ "application/json": { schema } });
  const M = { $ref: "#/components/schemas/t.v1.M" };

  test("`*` is the message, less what the path binds; nothing is required, an empty body is an empty message", () => {
    expect(get(`post: "/v1" body: "*"`).operation.requestBody).toEqual({ content: json(M) });
    expect(get(`post: "/v1/{name}" body: "*"`).operation.requestBody).toEqual({
      content: json({ type: "object", properties: { other: { type: "string" } } }),
    });
    expect(get(`delete: "/v1"`).operation.requestBody).toBeUndefined();
  });

  test.each([
    ["Inner f = 3;", { $ref: "#/components/schemas/t.v1.M.Inner" }],
    ["repeated int64 f = 3;", { type: "array", items: { type: "string", format: "int64", pattern: "^-?[0-9]+$" } }],
    ["map<int32, M> f = 3;", { type: "object", propertyNames: { pattern: "^-?[0-9]+$" }, additionalProperties: M }],
    ["google.protobuf.Value f = 3;", {}],
  ])("a field is a body and a response: %s", (field, schema) => {
    const found = get(`post: "/v1" body: "f" response_body: "f"`, field).operation;
    expect(found.requestBody?.content).toEqual(json(schema));
    expect(found.responses["200"]?.content).toEqual(json(schema));
  });

  test("a field of a well-known type that is not set is null", () => {
    expect(
      get(`get: "/v1" response_body: "f"`, "google.protobuf.Timestamp f = 1;").operation.responses["200"]?.content,
    ).toEqual(json({ anyOf: [{ type: "string", format: "date-time" }, { type: "null" }] }));
  });

  test("HttpBody is any content at all", () => {
    const document = describeText(`service S {
      rpc Put(google.api.HttpBody) returns (google.api.HttpBody) { option (google.api.http) = { put: "/a" body: "*" }; }
      rpc Part(M) returns (stream M) { option (google.api.http) = { put: "/b" body: "f" response_body: "f" }; } }
      message M { google.api.HttpBody f = 1; }`);
    for (const id of ["S_Put", "S_Part"]) {
      const found = operation(document, id).operation;
      expect(found.requestBody?.content).toEqual({ "*/*": {} });
      expect(found.responses["200"]?.content).toEqual({ "*/*": {} });
    }
  });

  test("a stream is lines, events or one array", () => {
    const document =
      describeText(`service S { rpc Watch(M) returns (stream M) { option (google.api.http) = { get: "/a" }; } }
      message M {}`);
    expect(operation(document, "S_Watch").operation.responses["200"]?.content).toEqual({
      "application/x-ndjson": { schema: M },
      "text/event-stream": { schema: M },
      "application/json": { schema: { type: "array", items: M } },
    });
  });

  test("a message that contains itself refers to itself", () => {
    const document = describeText(service(`post: "/v1" body: "*"`, "M child = 1; repeated M children = 2;"));
    expect(document.components.schemas["t.v1.M"]).toEqual({
      type: "object",
      properties: { child: M, children: { type: "array", items: M } },
    });
  });

  test("a required field of proto2 is required", () => {
    const document = describeProtos({
      "a.proto": `syntax = "proto2"; package a; import "google/api/annotations.proto"; message M { required string a = 1; optional string b = 2; }
        service S { rpc Go(M) returns (M) { option (google.api.http) = { post: "/a" body: "*" }; } }`,
    });
    expect(document.components.schemas["a.M"]).toMatchObject({ required: ["a"] });
  });
});

test("failures are google.rpc.Status, unless an overlay replaces it", () => {
  const found = describeText(service(`get: "/a"`));
  expect(operation(found, "Shelf_Get").operation.responses.default).toEqual({ $ref: "#/components/responses/default" });
  expect(Object.keys(found.components.schemas)).toContain("google.rpc.Status");
  expect(Object.keys(generated.components.schemas)).not.toContain("google.rpc.Status");
});

describe("an overlay", () => {
  const directory = mkdtempSync(join(tmpdir(), "overlay-"));
  afterAll(() => rmSync(directory, { recursive: true, force: true }));
  const overlay = (name: string, text: string) => {
    writeFileSync(join(directory, name), text);
    return `overlay=${relative(process.cwd(), join(directory, name))}`;
  };

  test("is merged into the document, into all operations, and into one", () => {
    const patch = {
      document: { info: { title: "Shelves" }, components: { schemas: { "google.rpc.Status": null } } },
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
    ["that is no object", `[]`, /not an object/],
  ])("%s is refused", (_, text, message) => {
    // A unique name: modules are cached.
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
