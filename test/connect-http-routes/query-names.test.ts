/** Names of fields that have dots and brackets in them: a name in the OpenAPI document, and of the REST client, is a name on the wire. */
import {
  create,
  createFileRegistry,
  type DescMessage,
  type DescMethodUnary,
  type DescService,
  fromJson,
  type JsonObject,
  type JsonValue,
  type Message,
  setExtension,
  toJson,
} from "@bufbuild/protobuf";
import {
  FileDescriptorSetSchema,
  FieldDescriptorProto_Label as Label,
  MethodOptionsSchema,
  FieldDescriptorProto_Type as Type,
} from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { http } from "../../gen/google/api/annotations_pb.ts";
import { HttpRuleSchema } from "../../gen/google/api/http_pb.ts";
import { createRestClient } from "../../src/connect-http-routes/client/index.ts";
import { createFetchHandler, createRoutes } from "../../src/connect-http-routes/index.ts";
import { describeServices } from "../../src/protoc-gen-http-openapi/document.ts";
import { type Document, operationsOf } from "../protoc-gen-http-openapi/document.ts";

type Kind = "scalar" | "list" | "map" | "message";
type Field = { readonly jsonName: string; readonly kind: Kind };
/** The fields of a message, and those of the message that its fields of the kind "message" contain. */
type Shape = { readonly root: readonly Field[]; readonly inner: readonly Field[] };

/** The key of all map entries. A name that ends like an entry may be either, so keys are not arbitrary here. */
const KEY = "key";

/** Returns a service that returns the message it gets in a query. */
function serviceOf({ root, inner }: Shape): DescService {
  const entry = (name: string) => ({
    name,
    field: [
      { name: "key", number: 1, jsonName: "key", type: Type.STRING, label: Label.OPTIONAL },
      { name: "value", number: 2, jsonName: "value", type: Type.STRING, label: Label.OPTIONAL },
    ],
    options: { mapEntry: true },
  });
  const message = (name: string, fields: readonly Field[]) => ({
    name,
    field: fields.map(({ jsonName, kind }, index) => ({
      ...{ name: `field_${index}`, number: index + 1, jsonName },
      type: kind === "map" || kind === "message" ? Type.MESSAGE : Type.STRING,
      label: kind === "list" || kind === "map" ? Label.REPEATED : Label.OPTIONAL,
      ...(kind === "map" && { typeName: `.t.${name}.Field${index}Entry` }),
      ...(kind === "message" && { typeName: ".t.Inner" }),
    })),
    nestedType: fields.flatMap(({ kind }, index) => (kind === "map" ? [entry(`Field${index}Entry`)] : [])),
  });
  const options = create(MethodOptionsSchema);
  setExtension(options, http, create(HttpRuleSchema, { pattern: { case: "get", value: "/v1/echo" } }));
  const method = { name: "Echo", inputType: ".t.Root", outputType: ".t.Root", options };
  const file = {
    ...{ name: "t.proto", package: "t", syntax: "proto3" },
    messageType: [message("Root", root), message("Inner", inner)],
    service: [{ name: "Echo", method: [method] }],
  };
  const service = createFileRegistry(create(FileDescriptorSetSchema, { file: [file] })).getService("t.Echo");
  if (service === undefined) throw new Error("no such service");
  return service;
}

/** Returns every field that has a text, as its name on the wire and the JSON of a message with it alone. */
function leavesOf({ root, inner }: Shape): { readonly name: string; readonly json: JsonObject }[] {
  const leaf = ({ jsonName, kind }: Field) => ({
    name: kind === "map" ? `${jsonName}[${KEY}]` : jsonName,
    json: { [jsonName]: kind === "list" ? ["x"] : kind === "map" ? { [KEY]: "x" } : "x" } as JsonObject,
  });
  return root.flatMap((field) => {
    if (field.kind !== "message") return [leaf(field)];
    return inner.map((within) => {
      const { name, json } = leaf(within);
      return { name: `${field.jsonName}.${name}`, json: { [field.jsonName]: json } };
    });
  });
}

const serve = (service: DescService) => {
  const table = createRoutes(service);
  const echo = { echo: (message: Message) => message } as unknown as ServiceImpl<DescService>;
  const handle = createFetchHandler({
    routes: (router) => void router.service(service, echo),
    tables: [table],
    refuseUnknownQuery: true,
  });
  return { table, handle };
};

async function expectAll(shape: Shape): Promise<void> {
  const service = serviceOf(shape);
  const { table, handle } = serve(service);
  const leaves = leavesOf(shape);
  // The document names every field as the wire does, a map without its key.
  const [place] = operationsOf(describeServices([table], {}) as unknown as Document);
  const named = (place?.operation.parameters ?? []).map(({ name, style }) =>
    style === "deepObject" ? `${name}[${KEY}]` : name,
  );
  expect(named.sort()).toEqual(leaves.map(({ name }) => name).sort());
  for (const { name, json } of leaves) {
    const response = await handle(new Request(`http://x/v1/echo?${encodeURIComponent(name)}=x`));
    expect([response.status, await response.json()], name).toEqual([200, json]);
  }
  // The REST client sends all fields at once, by the same names.
  const fetch: typeof globalThis.fetch = (input, init) => handle(new Request(input, init));
  const client = createRestClient(table, { baseUrl: "http://x", fetch }) as unknown as Record<
    string,
    (message: Message) => Promise<Message>
  >;
  const { input } = service.methods[0] as DescMethodUnary;
  const message = fromJson(input, merge(leaves.map(({ json }) => json)));
  const returned = await client.echo?.(message);
  expect(jsonOf(input, returned)).toEqual(jsonOf(input, message));
}

const jsonOf = (type: DescMessage, message: Message | undefined) => message && toJson(type, message);

function merge(objects: readonly JsonObject[]): JsonObject {
  const all: JsonObject = {};
  for (const object of objects) {
    for (const [name, value] of Object.entries(object)) {
      const before = all[name];
      all[name] =
        typeof before === "object" && !Array.isArray(before)
          ? { ...before, ...(value as JsonObject) }
          : (value as JsonValue);
    }
  }
  return all;
}

const scalar = (jsonName: string): Field => ({ jsonName, kind: "scalar" });
const NO_FIELDS: readonly Field[] = [scalar("x")];

describe("a name with dots or brackets", () => {
  test.each<[string, Shape]>([
    ["with dots", { root: [scalar("a.b"), scalar("filter.state")], inner: NO_FIELDS }],
    [
      "with brackets",
      { root: [scalar("filter[state]"), scalar("page[size]"), { jsonName: "ids[]", kind: "list" }], inner: NO_FIELDS },
    ],
    [
      "beside a message whose fields look like it",
      { root: [{ jsonName: "a", kind: "message" }, scalar("a.b")], inner: [scalar("c")] },
    ],
    [
      "that begins a longer one",
      {
        root: [
          { jsonName: "a", kind: "message" },
          { jsonName: "a.b", kind: "message" },
        ],
        inner: [scalar("b.c"), scalar("d")],
      },
    ],
    [
      "of a map",
      {
        root: [
          { jsonName: "a[b]", kind: "map" },
          { jsonName: "a", kind: "map" },
        ],
        inner: NO_FIELDS,
      },
    ],
  ])("%s", async (_, shape) => {
    await expectAll(shape);
  });

  test("that can be split in many ways is read quickly", async () => {
    const root = ["a", "a.a", "a.a.a", "a.a.a.a"].map((jsonName): Field => ({ jsonName, kind: "message" }));
    // The inner messages contain themselves: each dot may be within a name or between two.
    const service = serviceOf({ root, inner: root });
    const { handle } = serve(service);
    const response = await handle(new Request(`http://x/v1/echo?${"a.".repeat(90)}nothing=x`));
    expect(response.status).toBe(400);
  });

  test("is what the document and the client say, whatever the names are", async () => {
    const name = fc.string({
      unit: fc.constantFrom("a", "b", ".", "[", "]", "$", " ", "é", "-", "&", "="),
      minLength: 1,
      maxLength: 5,
    });
    const kind = fc.constantFrom<Kind>("scalar", "list", "map", "message");
    const fieldsOf = (kinds: fc.Arbitrary<Kind>) =>
      fc.uniqueArray(fc.record({ jsonName: name, kind: kinds }), {
        minLength: 1,
        maxLength: 4,
        selector: ({ jsonName }) => jsonName,
      });
    const shapes = fc.record({ root: fieldsOf(kind), inner: fieldsOf(fc.constantFrom<Kind>("scalar", "list", "map")) });
    await fc.assert(
      fc.asyncProperty(shapes, async (shape) => {
        const names = leavesOf(shape).map((leaf) => leaf.name);
        fc.pre(new Set(names).size === names.length);
        await expectAll(shape);
      }),
      { numRuns: 150 },
    );
  });
});
