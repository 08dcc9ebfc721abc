/** The fetch entry of the HTTP layer runs in a context that has only the globals of every runtime with fetch, and none of Node. */
import { join } from "node:path";
import { createContext, runInContext } from "node:vm";
import { gunzipSync, gzipSync } from "node:zlib";
import { rolldown } from "rolldown";
import { beforeAll, describe, expect, test } from "vitest";

const ROOT = join(import.meta.dirname, "../../..");
/** The globals that the entry uses. They belong to the common API of workerd, Deno, Bun and browsers (WinterTC). */
const WEB = [
  ...["Request", "Response", "Headers", "URL", "URLSearchParams", "Blob", "AbortController", "AbortSignal", "Event"],
  ...[
    "ReadableStream",
    "WritableStream",
    "TransformStream",
    "CompressionStream",
    "DecompressionStream",
    "DOMException",
  ],
  ...["TextEncoder", "TextDecoder", "setTimeout", "clearTimeout", "setInterval", "clearInterval", "queueMicrotask"],
  ...["atob", "btoa", "console", "crypto", "performance", "structuredClone"],
];

const WORKER = `
import { createFetchHandler, createRoutes } from "connect-http-routes/fetch";
import { richRoutes } from "./test/connect-http-routes/support/rich-service.ts";
import { RichService } from "./test/connect-http-routes/gen/rich/v1/rich_pb.ts";
const tables = [createRoutes(RichService)];
export default createFetchHandler({ routes: richRoutes, tables, compressStreams: true, streamHeadWaitMs: 0 });
`;

/** Returns the bundle of a worker, and the Node modules that it imports, which other runtimes lack. */
async function bundle(): Promise<{ readonly code: string; readonly imports: readonly string[] }> {
  const build = await rolldown({
    input: "worker",
    platform: "neutral",
    resolve: { mainFields: ["module", "main"], conditionNames: ["import", "default"] },
    plugins: [
      {
        name: "worker",
        resolveId: (id) => (id === "worker" ? join(ROOT, "worker.ts") : null),
        load: (id) => (id === join(ROOT, "worker.ts") ? WORKER : null),
      },
      {
        // The test service imports the entry of the HTTP layer for Node. This plugin replaces it by the entry for fetch, which exports the
        // function under the same name.
        name: "service",
        resolveId: (id) =>
          /connect-http-routes\/index\.ts$/.test(id) ? join(ROOT, "src/connect-http-routes/fetch/index.ts") : null,
      },
    ],
    external: /^node:/,
  });
  try {
    const { output } = await build.generate({ format: "iife", name: "worker", exports: "named" });
    return { code: output[0].code, imports: output[0].imports };
  } finally {
    await build.close();
  }
}

type Handle = (request: Request) => Promise<Response>;
/** Runs the bundle where there is only what every runtime has, and `others`. */
let start: (others?: object) => Handle;
let handle: Handle;
let imports: readonly string[];
beforeAll(async () => {
  const bundled = await bundle();
  imports = bundled.imports;
  const web = Object.fromEntries(WEB.map((name) => [name, Reflect.get(globalThis, name)]));
  start = (others) => runInContext(`${bundled.code}; worker.default`, createContext({ ...web, ...others })) as Handle;
  handle = start();
});

const post = (body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string> = {}) =>
  handle(
    new Request("https://api.example/v1/echo", {
      method: "POST",
      body,
      headers: { "content-type": "application/json", ...headers },
    }),
  );

describe("the entry for fetch", () => {
  test("imports no module of Node", () => expect(imports).toEqual([]));

  test("serves a message, and refuses a wrong one", async () => {
    const response = await post('{"stringValue":"ä€"}');
    expect([response.status, await response.json()]).toEqual([200, { stringValue: "ä€" }]);
    expect(response.headers.get("content-length")).toBe("23");
    expect((await post("{")).status).toBe(400);
  });

  test("reads gzip within the bounds, and writes it", async () => {
    const zipped = { "content-encoding": "gzip", "accept-encoding": "gzip" };
    const text = JSON.stringify({ stringValue: "a".repeat(5_000) });
    const response = await post(gzipSync(text), zipped);
    expect([response.status, response.headers.get("content-encoding")]).toEqual([200, "gzip"]);
    expect(gunzipSync(await response.arrayBuffer()).toString()).toBe(text);
    expect((await post("no gzip", zipped)).status).toBe(400);
    expect((await post(gzipSync(text).subarray(0, 20), zipped)).status).toBe(400);
    expect((await post(gzipSync(`"${"a".repeat(5_000_000)}"`), zipped)).status).toBe(413);
  });

  test("streams, without compression", async () => {
    const response = await handle(
      new Request("https://api.example/v1/count/3", { headers: { "accept-encoding": "gzip" } }),
    );
    expect([response.status, response.headers.get("content-encoding")]).toEqual([200, null]);
    expect(await response.text()).toBe('{"number":1}\n{"number":2}\n{"number":3}\n');
  });

  test("streams where setImmediate only throws, as in the edge functions of Next.js", async () => {
    const setImmediate = () => {
      throw new Error("A Node.js API is used (setImmediate) which is not supported in the Edge Runtime.");
    };
    const response = await start({ setImmediate })(new Request("https://api.example/v1/count/3"));
    expect(await response.text()).toBe('{"number":1}\n{"number":2}\n{"number":3}\n');
  });

  test("reports a failure before the first message as an ordinary response", async () => {
    const response = await handle(new Request("https://api.example/v1/count/3?failAfter=0"));
    expect(response.status).toBe(500);
  });
});
