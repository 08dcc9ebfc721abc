import { create, createFileRegistry, type DescFile } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "vitest";
import { createFetchHandler, createRoutes } from "../../src/connect-http-routes/index.ts";
import { RichServiceRoutes } from "./gen/rich/v1/rich_http.ts";
import { RichService } from "./gen/rich/v1/rich_pb.ts";

/**
 * Returns the test service with descriptors that are created at run time, as a registry or reflection provides them. They are not those of
 * the generated code.
 */
function late() {
  const files = new Map<string, DescFile>();
  const add = (file: DescFile) => {
    for (const dependency of file.dependencies) add(dependency);
    files.set(file.name, file);
  };
  add(RichService.file);
  const registry = createFileRegistry(
    create(FileDescriptorSetSchema, { file: [...files.values()].map((file) => file.proto) }),
  );
  const service = registry.getService("rich.v1.RichService");
  if (service === undefined) throw new Error("no such service");
  // The cast gives the descriptor the type of the generated one. It changes nothing at run time.
  return service as typeof RichService;
}

describe("a service whose descriptors are loaded at run time", () => {
  test("has the same routes as the plugin generates", () => {
    expect(createRoutes(late()).routes).toEqual(RichServiceRoutes.routes);
  });

  test("is served", async () => {
    const service = late();
    const handler = createFetchHandler({
      routes: (router) => {
        router.service(service, { echo: (request) => request });
      },
      tables: [createRoutes(service)],
    });
    const response = await handler(new Request("http://x/v1/echo?nested.inner.id=5&timestamp=2020-01-01T00:00:00Z"));
    expect([response.status, await response.json()]).toEqual([
      200,
      { nested: { inner: { id: "5" } }, timestamp: "2020-01-01T00:00:00Z" },
    ]);
  });
});
