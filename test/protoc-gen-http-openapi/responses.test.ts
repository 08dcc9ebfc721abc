/** The document and the runtime agree on a service with every kind of field and binding. */
import { expect, test } from "vitest";
import { createFetchHandler } from "../../src/connect-http-routes/index.ts";
import { RichServiceRoutes } from "../connect-http-routes/gen/rich/v1/rich_http.ts";
import { richRoutes } from "../connect-http-routes/support/rich-service.ts";
import { describeDirectory } from "./describe.ts";
import { operationsOf, type Parameter, type Place, resolve, type Schema, schemaChecker } from "./document.ts";

const document = describeDirectory("test/connect-http-routes/proto");
const check = schemaChecker(document);
const handler = createFetchHandler({
  routes: richRoutes,
  tables: [RichServiceRoutes],
  // The handler refuses a parameter that it does not know, so the document cannot have more parameters than the handler.
  refuseUnknownQuery: true,
});

/** Returns a text value that is valid under the schema. */
function sample(schema: Schema): string {
  const {
    type,
    format,
    items,
    enum: values,
    oneOf,
    pattern,
    contentEncoding,
    contentSchema,
  } = resolve(document, schema);
  if (contentSchema !== undefined) return { object: "{}", array: "[]" }[String((contentSchema as Schema).type)] ?? "1";
  if (contentEncoding === "base64") return "YQ==";
  if (Array.isArray(oneOf)) return "1.5";
  if (Array.isArray(values)) return String(values[1] ?? values[0]);
  if (type === "array") return sample(items as Schema);
  if (type === "boolean") return "true";
  if (format === "date-time") return "2020-01-02T03:04:05Z";
  if (String(pattern).endsWith("s$")) return "1.5s";
  return "1";
}

function url({ path }: Place, parameters: readonly Parameter[]): string {
  const value = ({ schema }: Parameter) => encodeURIComponent(sample(schema));
  const filled = parameters
    .filter((parameter) => parameter.in === "path")
    .reduce((text, parameter) => text.replace(`{${parameter.name}}`, value(parameter)), path);
  const query = parameters.filter((parameter) => parameter.in === "query");
  const pairs = query.map((parameter) => {
    if (parameter.style !== "deepObject") return `${encodeURIComponent(parameter.name)}=${value(parameter)}`;
    const { propertyNames, additionalProperties } = parameter.schema as Record<string, Schema>;
    const key = propertyNames === undefined ? "a.b" : sample(propertyNames);
    return `${parameter.name}[${key}]=${encodeURIComponent(sample(additionalProperties ?? {}))}`;
  });
  return `http://localhost${filled}${pairs.length > 0 ? `?${pairs.join("&")}` : ""}`;
}

/** The media type of content whose bytes may be of any type. */
const BINARY = "application/octet-stream";

function fetchRaw(place: Place, parameters: readonly Parameter[], accept = "*/*"): Promise<Response> {
  const content = Object.entries(place.operation.requestBody?.content ?? {})[0];
  const type = content?.[0] === BINARY ? "text/plain" : "application/json";
  return handler(
    new Request(url(place, parameters), {
      // A route with the method `*` matches every method without another route.
      method: place.method === "*" ? "PURGE" : place.method,
      headers: { accept, ...(content && { "content-type": type }) },
    }),
  );
}

const places = operationsOf(document);
const inPath = ({ operation }: Place) => (operation.parameters ?? []).filter((parameter) => parameter.in === "path");
const title = ({ method, path }: Place) => `${method} ${path}`;
const titled = places.map((place) => [title(place), place] as const);

test("every route is an operation, and every operation a route", () => {
  const routes = RichServiceRoutes.routes.map(({ method, rpc }) => `${method} ${rpc}`.toLowerCase());
  const operations = places.map(({ method, operation: { operationId } }) =>
    `${method} ${operationId.split("_")[1]}`.toLowerCase(),
  );
  expect(operations.sort()).toEqual(routes.sort());
});

test.each(titled)("%s responds as documented", async (_, place) => {
  const response = await fetchRaw(place, inPath(place));
  const { responses } = place.operation;
  // The RPC `Misbehave` always fails, so its errors are checked instead.
  expect([200, 409]).toContain(response.status);
  const described = resolve(
    document,
    responses[response.status] ?? (responses.default as NonNullable<(typeof responses)[0]>),
  );
  const [type = "", text] = [response.headers.get("content-type")?.split(";")[0], await response.text()];
  const content = described.content?.[type] ?? described.content?.[BINARY];
  expect(content, `${type} is not among ${Object.keys(described.content ?? {})}`).toBeDefined();
  const { schema = {} } = content ?? {};
  if (schema.format === "binary") return;
  const values = type === "application/x-ndjson" ? text.split("\n").filter(Boolean) : [text];
  for (const value of values) expect(check(schema, JSON.parse(value))).toEqual([]);
});

test("a stream is the documented array", async () => {
  const place = places.find(({ path }) => path === "/v1/count/{to}") as Place;
  const response = await fetchRaw(place, inPath(place), "application/json");
  const value = (await response.json()) as unknown[];
  expect(value).toEqual([{ number: 1 }]);
  const schema = place.operation.responses["200"]?.content?.["application/json"]?.schema as Schema;
  expect(check(schema, value)).toEqual([]);
  expect(check(schema, value[0])).not.toEqual([]);
});

test("the runtime accepts every documented query parameter and value", async () => {
  const place = places.find(({ method, path }) => method === "GET" && path === "/v1/echo") as Place;
  const query = place.operation.parameters ?? [];
  expect(query.length).toBeGreaterThan(60);
  for (const parameter of query) {
    const response = await fetchRaw(place, [parameter]);
    const body = (await response.json()) as object;
    expect([response.status, parameter.name, body]).toEqual([200, parameter.name, expect.anything()]);
    const [top = ""] = parameter.name === "@other" ? [parameter.name] : parameter.name.split(".");
    expect(Object.keys(body), parameter.name).toContain(top);
  }
});
