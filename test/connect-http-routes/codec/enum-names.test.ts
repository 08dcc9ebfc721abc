import { createRegistry } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { declaredName } from "../../../src/connect-http-routes/codec/enum-names.ts";
import { createFetchHandler } from "../../../src/connect-http-routes/index.ts";
import { RichServiceRoutes } from "../gen/rich/v1/rich_http.ts";
import { ColorSchema, EverythingSchema, NestedSchema } from "../gen/rich/v1/rich_pb.ts";
import { richRoutes } from "../support/rich-service.ts";
import { openFetch } from "../support/servers.ts";

const jsonOptions = { registry: createRegistry(NestedSchema, EverythingSchema) };
const listenerWith = (caseInsensitiveEnums: boolean) =>
  openFetch(createFetchHandler({ routes: richRoutes, tables: [RichServiceRoutes], jsonOptions, caseInsensitiveEnums }));
const post = (body: object) => ({ method: "POST", target: "/v1/echo", body: JSON.stringify(body) });

describe("names of enum values in any case, by option", () => {
  const listener = listenerWith(true);

  test("are accepted in the body: in lists, maps, messages and Any", async () => {
    const message = {
      enumValue: "color_red",
      enums: ["Color_Red", "COLOR_NEGATIVE", 1],
      nested: { color: "color_negative" },
      enumMap: { 7: "color_red" },
      nestedMap: { 1: { color: "color_red" } },
      oneof_enum: "color_red",
      any: { "@type": "type.googleapis.com/rich.v1.Nested", color: "color_red" },
      struct: { enumValue: "color_red" },
    };
    expect((await listener.fetchRaw(post(message))).json()).toEqual({
      enumValue: "COLOR_RED",
      enums: ["COLOR_RED", "COLOR_NEGATIVE", "COLOR_RED"],
      nested: { color: "COLOR_NEGATIVE" },
      enumMap: { 7: "COLOR_RED" },
      nestedMap: { 1: { color: "COLOR_RED" } },
      oneofEnum: "COLOR_RED",
      any: { "@type": "type.googleapis.com/rich.v1.Nested", color: "COLOR_RED" },
      struct: { enumValue: "color_red" },
    });
  });

  test("are accepted in a body that is one field, and in path and query", async () => {
    const field = await listener.fetchRaw({
      method: "PUT",
      target: "/v1/echo/nested/1/n",
      body: '{"color":"color_red"}',
    });
    expect(field.json()).toMatchObject({ nested: { color: "COLOR_RED" } });
    const query = await listener.fetchRaw({ target: "/v1/echo?enumValue=Color_Red&enumMap[1]=color_negative" });
    expect(query.json()).toEqual({ enumValue: "COLOR_RED", enumMap: { 1: "COLOR_NEGATIVE" } });
    const path = await listener.fetchRaw({ target: "/v1/others/s/true/AA/color_red/CLOSED_ONE/o" });
    expect(path.json()).toMatchObject({ enumValue: "COLOR_RED" });
  });

  test("are refused where they are nested too deeply", async () => {
    const depth = 50_000;
    const deep = `{"any":${'{"@type":"/rich.v1.Everything","any":'.repeat(depth)}{}${"}".repeat(depth)}}`;
    const response = await listener.fetchRaw({ method: "POST", target: "/v1/echo", body: deep });
    expect([response.status, response.json()]).toMatchObject([400, { message: "body: nested too deeply" }]);
  });

  test("are still no value if none has that name", async () => {
    expect((await listener.fetchRaw(post({ enumValue: "color_blue" }))).json()).toEqual({});
    expect((await listener.fetchRaw({ target: "/v1/echo?enumValue=color_blue" })).status).toBe(400);
  });
});

test("names of enum values in another case are unknown by default", async () => {
  const listener = listenerWith(false);
  expect((await listener.fetchRaw(post({ enumValue: "color_red" }))).json()).toEqual({});
  expect((await listener.fetchRaw({ target: "/v1/echo?enumValue=color_red" })).status).toBe(400);
});

test("a name as declared wins over one that differs in case", () => {
  const values = ["Red", "RED", "red"].map((name, number) => ({ ...ColorSchema.values[0], name, number }));
  const type = { ...ColorSchema, values } as typeof ColorSchema;
  expect(["Red", "RED", "red", "blue"].map((name) => declaredName(type, name))).toEqual(["Red", "RED", "red", "blue"]);
});
