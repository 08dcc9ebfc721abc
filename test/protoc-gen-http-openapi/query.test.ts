/** Fields that neither path nor body binds become query parameters. */
import { describe, expect, test } from "vitest";
import { get, parameterNames } from "./describe.ts";

describe("the query", () => {
  const fields =
    "string name = 1; Inner inner = 2; repeated int32 page_sizes = 3; map<string, string> m = 4; repeated M ms = 5;";

  test("has the fields that neither path nor body binds, nested ones with dots", () => {
    expect(parameterNames(get(`get: "/v1/{name}"`, fields).operation.parameters, "query")).toEqual([
      "inner.id",
      "inner.deep.n",
      "pageSizes",
      "m",
    ]);
    expect(parameterNames(get(`post: "/v1" body: "inner"`, fields).operation.parameters, "query")).toEqual([
      "name",
      "pageSizes",
      "m",
    ]);
    expect(parameterNames(get(`get: "/v1/{inner.id}"`, fields).operation.parameters, "query")).toEqual([
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
