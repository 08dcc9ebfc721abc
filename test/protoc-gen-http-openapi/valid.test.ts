/** The generated documents are valid OpenAPI 3.1 according to an independent validator. */
import { Validator } from "@seriousme/openapi-schema-validator";
import { expect, test } from "vitest";
import { describeDirectory, generated } from "./describe.ts";
import { type Document, operationsOf, resolve, type Schema, schemaChecker } from "./document.ts";

const documents: [string, Document][] = [
  ["gen/openapi.json", generated],
  ["the service with every kind of field and binding", describeDirectory("test/connect-http-routes/proto")],
];

test.each(documents)("%s is valid by an independent validator", async (_, document) => {
  const result = await new Validator().validate(structuredClone(document));
  expect(result.errors).toBeUndefined();
  expect(result.valid).toBe(true);
});

test("the independent validator rejects an invalid document", async () => {
  const broken = structuredClone(generated) as { info?: unknown };
  delete broken.info;
  expect((await new Validator().validate(broken)).valid).toBe(false);
});

test.each(documents)("in %s operation ids are unique", (_, document) => {
  const ids = operationsOf(document).map(({ operation }) => operation.operationId);
  expect(ids.length).toBeGreaterThan(4);
  expect(new Set(ids).size).toBe(ids.length);
});

test.each(documents)("in %s path parameters match the path", (_, document) => {
  for (const { path, operation } of operationsOf(document)) {
    const named = [...path.matchAll(/\{([^}]*)\}/g)].map((match) => match[1]);
    const parameters = operation.parameters ?? [];
    expect(parameters.filter((p) => p.in === "path").map((p) => p.name)).toEqual(named);
    expect(new Set(parameters.map((p) => `${p.in} ${p.name}`)).size).toBe(parameters.length);
  }
});

test.each(documents)("in %s no two paths differ only in parameter names", (_, document) => {
  const paths = Object.keys(document.paths).map((path) => path.replace(/\{[^}]*\}/g, "{}"));
  // OpenAPI cannot express the difference between `**` and `*`, so templates that differ only in these must not become two paths.
  expect(paths.length - new Set(paths).size).toBe(0);
});

test.each(documents)("in %s every reference resolves and every schema compiles", (_, document) => {
  const check = schemaChecker(document);
  const look = (value: unknown): void => {
    if (typeof value !== "object" || value === null) return;
    if ("$ref" in value) resolve(document, value);
    if ("schema" in value) check(value.schema as Schema, null);
    for (const inner of Object.values(value)) look(inner);
  };
  look(document);
  for (const schema of Object.values(document.components.schemas)) check(schema, null);
});
