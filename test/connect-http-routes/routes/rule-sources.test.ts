import { clone, createFileRegistry, type DescService, type JsonValue } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "vitest";
import {
  createFetchHandler,
  createMatcher,
  createRoutes,
  parseServiceConfig,
} from "../../../src/connect-http-routes/index.ts";
import { RelayService } from "../gen/relay/v1/relay_pb.ts";
import { relayRoutes } from "../support/relay-service.ts";

const templates = (options: Parameters<typeof createRoutes>[1]) =>
  createRoutes(RelayService, options).routes.map(({ rpc, method, template }) => `${rpc} ${method} ${template}`);
const config = (http: JsonValue) => parseServiceConfig({ type: "google.api.Service", name: "x.example.com", http });

describe("rules of a service config", () => {
  test("replace the annotations of the methods that they select", () => {
    const serviceConfig = config({
      rules: [
        {
          selector: "relay.v1.RelayService.Get",
          get: "/v2/{name}",
          additional_bindings: [{ post: "/v2", body: "*" }],
        },
      ],
    });
    const all = templates({ serviceConfig });
    expect(all.slice(0, 3)).toEqual(["get GET /v2/{name}", "get POST /v2", "count GET /v1/counts/{name}"]);
    expect(all).not.toContain("get GET /v1/items/{name=**}");
  });

  test("that cannot be mapped are warnings, as annotations are", () => {
    const warnings: string[] = [];
    const serviceConfig = config({ rules: [{ selector: "relay.v1.RelayService.Get", get: "/v2/{nothing}" }] });
    createRoutes(RelayService, { serviceConfig, onWarning: (warning) => warnings.push(warning) });
    expect(warnings).toEqual([expect.stringContaining('no field "nothing"')]);
  });

  test.each([
    ["a list", [], "a service config is an object"],
    ["a rule without a selector", { http: { rules: [{ get: "/a" }] } }, "no selector"],
    ["two rules for one method", { http: { rules: [{ selector: "a.B" }, { selector: "a.B" }] } }, "two rules for a.B"],
    ["an unknown field", { http: { rule: [] } }, "rule"],
  ])("are refused for %s", (_, value, message) => {
    expect(() => parseServiceConfig(value as JsonValue)).toThrow(message);
  });
});

/** Returns a copy of a service in which the options of its methods are removed. It therefore has no routes. */
function withoutAnnotations({ file, typeName }: DescService): DescService {
  const proto = clone(FileDescriptorProtoSchema, file.proto);
  for (const method of proto.service.flatMap((service) => service.method)) delete method.options;
  const registry = createFileRegistry(proto, (name) => file.dependencies.find((other) => other.proto.name === name));
  const service = registry.getService(typeName);
  if (service === undefined) throw new Error(`no service ${typeName}`);
  return service;
}

test("automatic routes are for methods without a rule, and serve the whole message", async () => {
  const serviceConfig = { rules: new Map(), decodeAll: false };
  expect(templates({ autoRoutes: true })).toEqual(templates({ serviceConfig }));
  const { routes } = createRoutes(withoutAnnotations(RelayService), { autoRoutes: true });
  expect(routes.map(({ method, template }) => `${method} ${template}`)).toContain("POST /relay.v1.RelayService/Get");
  const handler = createFetchHandler({ tables: [{ service: RelayService, routes }], routes: relayRoutes() });
  const body = new Blob(['{"number":"5"}']);
  const response = await handler(new Request("http://x/relay.v1.RelayService/Get", { method: "POST", body }));
  expect(await response.json()).toEqual({ number: "5" });
});

test("a table can have every escape of its multi-segment variables decoded", () => {
  const serviceConfig = config({ fully_decode_reserved_expansion: true });
  const own = createRoutes(RelayService, { serviceConfig });
  const bindings = (table: typeof own) => {
    const found = createMatcher([table]).match("GET", "/v1/items/a%2Fb%3Fc");
    return found.kind === "route" && found.bindings;
  };
  expect(bindings(own)).toEqual([{ field: "name", value: "a/b?c" }]);
  expect(bindings(createRoutes(RelayService))).toEqual([{ field: "name", value: "a%2Fb?c" }]);
});
