import { createRegistry, type DescField, fromJson, type Message, toJson } from "@bufbuild/protobuf";
import { type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import fc, { type Arbitrary } from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createHttpHandler, type Route, routeName } from "../../src/connect-http-routes/index.ts";
import { RichServiceRoutes } from "./gen/rich/v1/rich_http.ts";
import { type Everything, EverythingSchema, NestedSchema } from "./gen/rich/v1/rich_pb.ts";
import { arbitraryMessage, arbitraryValue, put } from "./support/arbitrary-message.ts";
import { encodeRequest, fitsQuery } from "./support/rest-client.ts";
import { richRoutes } from "./support/rich-service.ts";
import { type Listener, openHttp1, openHttp2 } from "./support/servers.ts";

const registry = createRegistry(NestedSchema);
const routes: readonly Route[] = RichServiceRoutes.routes.filter(({ rpc }) => rpc === "echo" || rpc === "echoPath");

let listeners: Listener[] = [];
beforeAll(async () => {
  const handler = createHttpHandler({ routes: richRoutes, tables: [RichServiceRoutes], jsonOptions: { registry } });
  listeners = [await openHttp1(handler), await openHttp2(handler)];
});
afterAll(async () => {
  for (const listener of listeners) await listener[Symbol.asyncDispose]();
});

describe("a message encoded as a request is decoded to an equal message", () => {
  test.each(routes.map((route) => [routeName(route), route] as const))("by %s", async (_, route) => {
    await fc.assert(
      fc.asyncProperty(requestFor(route), fc.nat({ max: 1 }), async (message, listener) => {
        const request = encodeRequest(EverythingSchema, message, route, registry);
        const response = await listeners[listener]?.fetchRaw(request);
        expect(response?.status, `${request.method} ${request.target}\n${request.body}\n${response?.text}`).toBe(200);
        const echoed = fromJson(EverythingSchema, response?.json() as never, { registry });
        expect(shown(echoed)).toEqual(shown(message));
      }),
      { numRuns: 40, endOnFailure: true },
    );
  });
});

/** Returns the JSON of a message after a round trip through text, in which JSON.stringify turns -0 into 0. */
function shown(message: Message): unknown {
  return JSON.parse(JSON.stringify(toJson(EverythingSchema, message as Everything, { registry })));
}

/** Returns an arbitrary message that a route can carry: the fields of path variables are set and not empty. */
function requestFor(route: Route): Arbitrary<Message> {
  const free = route.body === "*" ? () => true : (field: DescField) => field.name === route.body || fitsQuery(field);
  const inPath = route.variables.map(({ field }, index) => fc.tuple(fc.constant(field), pathText(route, field, index)));
  const base = arbitraryMessage(EverythingSchema, (field) =>
    field.parent === EverythingSchema ? free(field) : route.body === "*" || nestable(route, field),
  );
  return fc.tuple(base, ...inPath).map(([message, ...bindings]) => {
    if (route.body !== "*") prune(reflect(EverythingSchema, message as Everything), route.body);
    for (const [path, value] of bindings)
      setAt(reflect(EverythingSchema, message as Everything), path.split("."), value);
    return message;
  });
}

/** Returns whether a route can carry a field of a nested message: in the body if the body is that message, otherwise in the query. */
function nestable(route: Route, field: DescField): boolean {
  return route.body === "nested" || route.body === "nesteds" || fitsQuery(field);
}

/** Generates a value for a path variable. No segment of the path is empty. */
function pathText(route: Route, path: string, index: number): Arbitrary<unknown> {
  const variable = route.variables[index];
  const pattern = variable ? route.segments.slice(variable.start, variable.end) : [];
  const segment = fc
    .oneof(fc.string({ unit: "grapheme", minLength: 1 }), fc.constantFrom("a:seal", "%2F", "100%", "ü", " ", ".", ".."))
    .map((text) => text.replaceAll("/", "-"));
  if (pattern.length > 1 || pattern[0] === "**") {
    return fc
      .tuple(
        ...pattern.map((part) =>
          part === "**" ? fc.array(segment) : part === "*" ? segment.map((s) => [s]) : fc.constant([part]),
        ),
      )
      .map((parts) => parts.flat().join("/"));
  }
  const field = fieldAt(path);
  const value = arbitraryValue(field, () => true, 1);
  if (field.scalar === 9 && !path.includes("wrapper")) return fc.oneof(segment, fc.constant("a/b"));
  return value.filter((candidate) => textLength(field, candidate) > 0);
}

function textLength(field: DescField, value: unknown): number {
  const holder = reflect(field.parent);
  put(holder, field, value);
  const json = (toJson(field.parent, holder.message, { alwaysEmitImplicit: true }) as Record<string, unknown>)[
    field.jsonName
  ];
  return String(json).length;
}

function fieldAt(path: string): DescField {
  let type = EverythingSchema as { fields: readonly DescField[] };
  let found: DescField | undefined;
  for (const name of path.split(".")) {
    found = type.fields.find((field) => field.name === name);
    if (found?.message !== undefined) type = found.message;
  }
  if (found === undefined) throw new Error(`no field ${path}`);
  return found;
}

function setAt(message: ReflectMessage, [name, ...rest]: string[], value: unknown): void {
  const field = message.desc.fields.find((f) => f.name === name);
  if (field === undefined) throw new Error(`no field ${name}`);
  if (rest.length === 0 || field.fieldKind !== "message") {
    put(message, field, value);
    return;
  }
  const child = message.isSet(field) ? message.get(field) : reflect(field.message);
  setAt(child, rest, value);
  message.set(field, child);
}

/** Removes empty messages, because a query cannot distinguish them from absent ones. */
function prune(message: ReflectMessage, body: string): void {
  for (const field of message.fields) {
    if (field.fieldKind !== "message" || !message.isSet(field) || field.name === body) continue;
    if (field.message.typeName.startsWith("google.protobuf.")) continue;
    const child = message.get(field);
    prune(child, "");
    if (!child.fields.some((inner) => child.isSet(inner))) message.clear(field);
  }
}
