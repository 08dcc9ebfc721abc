/** A public tool (Prism) makes a mock server of each document. It accepts the requests of the typed client for every route. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { DescService } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { describe, expect, onTestFinished, test } from "vitest";
import { SessionServiceRoutes } from "../../gen/auth/v1/session_http.ts";
import { createRestTransport } from "../../src/connect-http-routes/client/index.ts";
import type { Route } from "../../src/connect-http-routes/index.ts";
import { RichServiceRoutes } from "../connect-http-routes/gen/rich/v1/rich_http.ts";
import { sampleMessage } from "../connect-http-routes/support/sample-message.ts";
import { describeDirectory, generated } from "./describe.ts";

const PRISM = "test/dependencies/mock-server/node_modules/@stoplight/prism-cli/dist/index.js";

/** Starts Prism on a document. */
async function startMock(document: object): Promise<string> {
  if (!existsSync(PRISM)) throw new Error("Prism is not installed: run sh test/setup.sh");
  const directory = mkdtempSync(join(tmpdir(), "mock-"));
  const file = join(directory, "openapi.json");
  writeFileSync(file, JSON.stringify(document));
  // Prism listens on a free port, and prints which one.
  const prism: ChildProcess = spawn(process.execPath, [PRISM, "mock", "--port", "0", file]);
  const exited = once(prism, "exit");
  onTestFinished(async () => {
    prism.kill();
    await exited;
    rmSync(directory, { recursive: true });
  });
  for await (const line of createInterface({ input: prism.stdout as NodeJS.ReadableStream })) {
    const origin = /listening on (http:\S+)/.exec(line)?.[1];
    if (origin !== undefined) return origin;
  }
  throw new Error("Prism has ended");
}

/** Returns why Prism refuses a request; undefined if it accepts the request. Faults of the response do not count. */
async function refusal(response: Response): Promise<string | undefined> {
  const violations = JSON.parse(response.headers.get("sl-violations") ?? "[]") as { readonly location: string[] }[];
  const ofRequest = violations.filter(({ location: [place] }) => place === "request");
  if (ofRequest.length > 0) return JSON.stringify(ofRequest);
  if (response.ok) return undefined;
  const { type = "" } = (await response.clone().json()) as { readonly type?: string };
  // Prism responds with this error to a request for a stream, because it does not support server-sent events. That is no refusal.
  return type.endsWith("#NO_COMPLEX_OBJECT_TEXT") ? undefined : `${response.status} ${type}`;
}

/** Sends a request for a route. */
async function send(baseUrl: string, service: DescService, route: Route): Promise<string | undefined> {
  let refused: string | undefined = "nothing was sent";
  const transport = createRestTransport([{ service, routes: [route] }], {
    baseUrl,
    async fetch(url, init) {
      const headers = new Headers(init?.headers);
      headers.set("authorization", "Bearer token");
      headers.set("cookie", "refresh_token=token");
      const response = await fetch(url, { ...init, headers });
      refused = await refusal(response);
      return response;
    },
  });
  const method = service.method[route.rpc];
  if (method === undefined) throw new Error(route.rpc);
  const client = createClient(service, transport) as Record<string, (input: object) => unknown>;
  try {
    const output = client[method.localName]?.(sampleMessage(method.input, route));
    if (method.methodKind === "unary") await output;
    else for await (const _ of output as AsyncIterable<unknown>);
  } catch (error) {
    // An error in the response is ignored, because Prism makes up its responses.
    if (refused === "nothing was sent") throw error;
  }
  return refused;
}

/** The HTTP methods of the routes that are tested. Routes with other methods are left out, because OpenAPI 3.1 cannot describe them. */
const METHODS = new Set(["GET", "PUT", "POST", "DELETE", "PATCH"]);

describe("a mock server accepts the requests of the client", () => {
  test.each<[string, object, { readonly service: DescService; readonly routes: readonly Route[] }]>([
    ["the public API", generated, SessionServiceRoutes],
    [
      "a service with every kind of field and binding",
      describeDirectory("test/connect-http-routes/proto"),
      RichServiceRoutes,
    ],
  ])("%s", async (_, document, { service, routes }) => {
    const origin = await startMock(document);
    const refused: string[] = [];
    for (const route of routes.filter(({ method }) => METHODS.has(method))) {
      const reason = await send(origin, service, route);
      if (reason !== undefined) refused.push(`${route.method} ${route.template}: ${reason}`);
    }
    expect(refused).toEqual([]);
  });

  test("and no others", async () => {
    const origin = await startMock(generated);
    const response = await fetch(`${origin}/v1/auth/sessions?pageSize=many`, {
      headers: { authorization: "Bearer t" },
    });
    expect(await refusal(response)).toContain("pagesize");
  });
});
