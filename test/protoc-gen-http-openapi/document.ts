/** The parts of an OpenAPI document that tests check, and JSON Schema validators for them. */
import Ajv2020, { type ValidateFunction } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";

export type Schema = { readonly [keyword: string]: unknown };
export type Parameter = {
  readonly name: string;
  readonly in: "path" | "query";
  readonly style?: string;
  readonly description?: string;
  readonly required?: boolean;
  readonly deprecated?: boolean;
  readonly schema: Schema;
};
export type Content = Readonly<Record<string, { readonly schema?: Schema }>>;
export type Response = {
  readonly $ref?: string;
  readonly description: string;
  readonly headers?: Readonly<Record<string, { readonly required?: boolean }>>;
  readonly content?: Content;
};
export type Operation = {
  readonly tags: readonly string[];
  readonly summary?: string;
  readonly description?: string;
  readonly operationId: string;
  readonly deprecated?: boolean;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly required?: boolean; readonly content: Content };
  readonly responses: Readonly<Record<string, Response>>;
  readonly security?: readonly Readonly<Record<string, readonly string[]>>[];
};
export type Document = {
  readonly openapi: string;
  readonly info: { readonly title: string; readonly version: string };
  readonly tags: readonly { readonly name: string; readonly description?: string }[];
  readonly servers: readonly { readonly url: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation | Readonly<Record<string, Operation>>>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>;
    readonly responses: Readonly<Record<string, Response>>;
    readonly securitySchemes?: Readonly<Record<string, Schema>>;
  };
};

export type Place = { readonly path: string; readonly method: string; readonly operation: Operation };

/** Returns every operation, including those whose HTTP methods OpenAPI 3.1 does not know. */
export function operationsOf(document: Document): Place[] {
  return Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).flatMap(([key, value]) => {
      if (isOperation(value)) return [{ path, method: key.toUpperCase(), operation: value }];
      if (key !== "x-additionalOperations") throw new Error(`${key} of ${path} is no operation`);
      return Object.entries(value).map(([method, operation]) => ({ path, method, operation }));
    }),
  );
}

function isOperation(value: Operation | Readonly<Record<string, Operation>>): value is Operation {
  return typeof value.operationId === "string";
}

/** Returns the operation with that id. */
export function operation(document: Document, operationId: string): Place {
  const found = operationsOf(document).filter((place) => place.operation.operationId === operationId);
  const [place, ...more] = found;
  if (place === undefined || more.length > 0) throw new Error(`${found.length} operations ${operationId}`);
  return place;
}

/** Resolves a reference of the document; returns any other value unchanged. */
export function resolve<T extends { readonly $ref?: unknown }>(document: Document, value: T): T {
  if (typeof value.$ref !== "string") return value;
  const [hash, ...path] = value.$ref.split("/");
  if (hash !== "#") throw new Error(`not a reference into the document: ${value.$ref}`);
  let found: unknown = document;
  for (const name of path) found = (found as Record<string, unknown>)[name];
  if (found === undefined) throw new Error(`nothing at ${value.$ref}`);
  return found as T;
}

/** Returns a function that checks a value against a schema of the document, and returns the errors; none if the value is valid. */
export function schemaChecker(document: Document): (schema: Schema, value: unknown) => string[] {
  const ajv = new Ajv2020.default({
    strict: true,
    allErrors: true,
    strictTypes: false,
    // The rule would demand that `properties` stands beside each `required`, but in a `oneOf` it stands one level above.
    strictRequired: false,
  });
  addFormats.default(ajv);
  for (const format of ["uint32", "uint64"]) ajv.addFormat(format, true);
  // Schemas refer to `components` of the document, which therefore must be a permitted keyword.
  ajv.addVocabulary(["components", "x-enum-varnames"]);
  const compiled = new Map<string, ValidateFunction>();
  return (schema, value) => {
    const key = JSON.stringify(schema);
    const validate = compiled.get(key) ?? ajv.compile({ ...schema, components: document.components });
    compiled.set(key, validate);
    if (validate(value)) return [];
    return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath || "/"} ${message}`);
  };
}
