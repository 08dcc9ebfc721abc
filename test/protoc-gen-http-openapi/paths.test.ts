/** Path templates become OpenAPI paths. */
import { describe, expect, test } from "vitest";
import { describeText, get, parameterNames, service } from "./describe.ts";
import { type Operation, operation } from "./document.ts";

describe("paths", () => {
  const spellings: [template: string, path: string, parameters: string[]][] = [
    ["/v1/{name}", "/v1/{name}", ["name"]],
    ["/v2/{name=*}", "/v2/{name}", ["name"]],
    ["/v3/{name=**}", "/v3/{name}", ["name"]],
    ["/v1/{inner.id}/x", "/v1/{inner_id}/x", ["inner_id"]],
    ["/v1/{name=shelves/*}/x", "/v1/shelves/{shelf}/x", ["shelf"]],
    ["/v1/{name=shelves/*/books/*}:read", "/v1/shelves/{shelf}/books/{book}:read", ["shelf", "book"]],
    [
      "/v1/{name=keyRings/*/boxes/*/entries/*}",
      "/v1/keyRings/{keyRing}/boxes/{box}/entries/{entry}",
      ["keyRing", "box", "entry"],
    ],
    ["/v1/{name=users/*/users/*}", "/v1/users/{user}/users/{user_2}", ["user", "user_2"]],
    ["/v1/{name=access/*/a-bs/*}", "/v1/access/{name_1}/a-bs/{name_2}", ["name_1", "name_2"]],
    ["/v1/{name=a/**}", "/v1/a/{name_1}", ["name_1"]],
    ["/v1/{name=here}/*", "/v1/here/{segment_1}", ["segment_1"]],
    ["/", "/", []],
    ["/v1/caf%c3%a9", "/v1/caf%C3%A9", []],
  ];
  const [first, ...more] = spellings.map(([template]) => `get: "${template}"`);
  const bindings = [first, ...more.map((option) => `additional_bindings { ${option} }`)].join(" ");
  const document = describeText(service(bindings, "string name = 1; Inner inner = 2;"));

  test.each(spellings)("%s becomes %s", (_, path, parameters) => {
    const found = document.paths[path]?.get as Operation;
    expect(parameterNames(found.parameters, "path")).toEqual(parameters);
    for (const parameter of found.parameters ?? []) {
      expect(parameter.required).toBe(parameter.in === "path" ? true : undefined);
    }
  });

  test("the description of a multi-segment variable mentions any number of segments", () => {
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
    expect(parameterNames(remove.operation.parameters, "path")).toEqual(["name"]);
    // The path binds the field `other`, and `name` is a query parameter.
    expect(parameterNames(remove.operation.parameters, "query")).toEqual(["name"]);
  });

  test("templates that OpenAPI would spell alike but match different paths stay apart", () => {
    const document = describeText(service(`get: "/v1/{name}" additional_bindings { get: "/v1/{name=**}" }`));
    expect(Object.keys(document.paths)).toEqual(["/v1/{name}", "/v1/{name_}"]);
  });
});
