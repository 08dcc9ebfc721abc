/** Messages become request and response bodies. */
import { describe, expect, test } from "vitest";
import { describeProtos, describeText, get, service } from "./describe.ts";
import { operation } from "./document.ts";

describe("bodies", () => {
  const json = (schema: object) => ({ "application/json": { schema } });
  const BINARY = { "application/octet-stream": { schema: { type: "string", format: "binary" } } };
  const M = { $ref: "#/components/schemas/t.v1.M" };

  test("`*` is the message, less what the path binds; it is not required, an empty body is an empty message", () => {
    expect(get(`post: "/v1" body: "*"`).operation.requestBody).toEqual({ content: json(M) });
    expect(get(`post: "/v1/{name}" body: "*"`).operation.requestBody).toEqual({
      content: json({ type: "object", properties: { other: { type: "string" } } }),
    });
    expect(get(`delete: "/v1"`).operation.requestBody).toBeUndefined();
  });

  test("a body is required where an empty message is not valid", () => {
    const rule = "[(google.api.field_behavior) = REQUIRED]";
    const fields = `string name = 1 ${rule}; Inner inner = 3 ${rule}; string other = 4;`;
    const required = (binding: string, of = fields) => get(binding, of).operation.requestBody?.required;
    expect(required(`post: "/v1" body: "*"`)).toBe(true);
    expect(required(`post: "/v1/{name}" body: "inner"`)).toBe(true);
    expect(required(`post: "/v1/{name}" body: "*"`, `string name = 1 ${rule}; string other = 4;`)).toBeUndefined();
    expect(required(`post: "/v1" body: "inner"`, "Inner inner = 3;")).toBeUndefined();
  });

  test("at most one of a oneof is said without alternatives, of which generators make types", () => {
    const both = "oneof choice { string a = 3; string b = 4; }";
    const schemaOf = (fields: string) =>
      describeText(service(`post: "/v1" body: "*"`, fields)).components.schemas["t.v1.M"];
    const pairs = (...names: [string, string][]) => names.map((required) => ({ required }));
    expect(schemaOf(both)?.not).toEqual({ required: ["a", "b"] });
    const more = schemaOf(`${both} oneof other { string c = 5; string d = 6; string e = 7; }`);
    expect(more?.not).toEqual({ anyOf: pairs(["a", "b"], ["c", "d"], ["c", "e"], ["d", "e"]) });
    expect(more).not.toHaveProperty("oneOf");
  });

  test("a DELETE has a body only if there are fields that nothing else can carry", () => {
    expect(get(`delete: "/v1/{name}" body: "*"`, "string name = 1;").operation.requestBody).toBeUndefined();
    expect(get(`delete: "/v1/{name}" body: "*"`).operation.requestBody).toEqual({
      content: json({ type: "object", properties: { other: { type: "string" } } }),
    });
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

  test("HttpBody is binary", () => {
    const document = describeText(`service S {
      rpc Put(google.api.HttpBody) returns (google.api.HttpBody) { option (google.api.http) = { put: "/a" body: "*" }; }
      rpc Part(M) returns (stream M) { option (google.api.http) = { put: "/b" body: "f" response_body: "f" }; } }
      message M { google.api.HttpBody f = 1; }`);
    for (const id of ["S_Put", "S_Part"]) {
      const found = operation(document, id).operation;
      expect(found.requestBody?.content).toEqual(BINARY);
      expect(found.responses["200"]?.content).toEqual(BINARY);
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
