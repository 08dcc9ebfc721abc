/** Bindings become operations, and comments become their descriptions. */
import { describe, expect, test } from "vitest";
import { describeProtos, describeText, service } from "./describe.ts";
import { operation, operationsOf } from "./document.ts";

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
        // book by its \`id\`.
        //
        // Or \`not_found\`.
        //
        // (-- Internal
        // note. --)
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
    // In OpenAPI a summary is plain text, and a description is CommonMark.
    expect([get.summary, get.description]).toEqual(["Gets one book by its id", "Or `not_found`."]);
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
      anyOf: [{ const: "KIND_UNSPECIFIED" }, { const: "KIND_NOVEL" }, { type: "integer", format: "int32" }],
    });
  });
});
