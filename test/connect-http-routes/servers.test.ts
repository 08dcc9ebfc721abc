import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { create } from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  type ConnectRouter,
  createContextKey,
  createContextValues,
  type HandlerContext,
  type Interceptor,
} from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createHttpHandler, createRoutes } from "../../src/connect-http-routes/index.ts";
import { type Everything, EverythingSchema, RichService } from "./gen/rich/v1/rich_pb.ts";

const remote = createContextKey("unknown");
const seen: Record<string, unknown>[] = [];
let instances = 0;
let implementation: (request: Everything, context: HandlerContext) => Promise<Everything> | Everything;

/** An interceptor that records its calls. Each RPC must create a new instance of it. */
const counting: Interceptor = (next) => {
  const instance = ++instances;
  let calls = 0;
  return async (req) => {
    calls++;
    seen.push({
      where: "counting",
      calls,
      fresh: instance === instances,
      header: req.header.get("x-in"),
      stream: req.stream,
      rpc: req.method.name,
      service: req.service.typeName,
      method: req.requestMethod,
      values: req.contextValues.get(remote),
      url: new URL(req.url).host.length > 0,
    });
    const response = await next(req);
    response.header.append("x-order", "outer");
    return response;
  };
};
const replacing: Interceptor = (next) => (req) => {
  if (req.header.get("x-replace") === null) return next(req);
  const header = new Headers(req.header);
  header.set("x-in", "replaced");
  return next({ ...req, header, contextValues: createContextValues().set(remote, "replaced") });
};
const replacingResponse: Interceptor = (next) => async (req) => {
  const response = await next(req);
  response.header.append("x-order", "inner");
  if (req.header.get("x-response") === null) return response;
  const header = new Headers();
  header.append("set-cookie", "c=3");
  return { ...response, header };
};
const refusing: Interceptor = (next) => (req) => {
  if (req.header.get("x-refuse") !== null)
    throw new ConnectError("not you", Code.PermissionDenied, { "x-why": "rule" });
  return next(req);
};

const routes = (router: ConnectRouter) => {
  router.service(RichService, {
    echo: (request, context) => implementation(request, context),
    pick: (request) => request,
  });
};
const options = {
  routes,
  interceptors: [counting, replacing, refusing, replacingResponse],
  contextValues: (req: { headers: NodeJS.Dict<string | string[]> }) =>
    createContextValues().set(remote, String(req.headers["x-caller"] ?? "anonymous")),
};

let origin = "";
const server = createServer((req, res) => handler(req, res));
const rpc = connectNodeAdapter(options);
const handler = createHttpHandler({
  ...options,
  tables: [createRoutes(RichService)],
  fallback: rpc,
});
beforeAll(async () => {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  server.close();
  server.closeAllConnections();
});
beforeEach(() => {
  seen.length = 0;
  instances = 0;
  implementation = (request) => request;
});

const listeners = { RPC: "/rich.v1.RichService/Echo", HTTP: "/v1/echo" };

async function through(path: string, headers: Record<string, string> = {}, body = '{"int32Value":1}') {
  const response = await fetch(origin + path, {
    method: "POST",
    body,
    headers: { "content-type": "application/json", ...headers },
  });
  const text = await response.text();
  const relevant = [...response.headers].filter(([name]) => name.startsWith("x-") || name === "set-cookie");
  const error = response.ok ? undefined : (JSON.parse(text) as { message: string }).message;
  return {
    status: response.status,
    headers: relevant,
    body: response.ok ? (JSON.parse(text) as unknown) : error,
    seen: seen.splice(0),
  };
}

describe("a call over HTTP and over RPC behaves the same:", () => {
  test.each([
    ["a result", {}],
    ["interceptors that see headers and context values", { "x-in": "a", "x-caller": "me" }],
    ["an interceptor that replaces headers and values", { "x-in": "a", "x-replace": "1" }],
    ["an interceptor that replaces the response headers", { "x-response": "1" }],
    ["an interceptor that refuses", { "x-refuse": "1" }],
  ])("%s", async (_, headers) => {
    implementation = (request, context) => {
      seen.push({
        where: "implementation",
        header: context.requestHeader.get("x-in"),
        all: [...context.requestHeader].some(([name]) => name === "content-type"),
        values: context.values.get(remote),
        method: context.requestMethod,
        rpc: context.method.name,
        timeout: context.timeoutMs(),
        spread: Object.keys({ ...context }).includes("signal") && { ...context }.signal instanceof AbortSignal,
        aborted: context.signal.aborted,
        isHeaders: context.requestHeader instanceof Headers && context.responseHeader instanceof Headers,
      });
      context.responseHeader.append("set-cookie", "a=1");
      context.responseHeader.append("set-cookie", "b=2");
      return request;
    };
    const overRpc = await through(listeners.RPC, headers);
    const overHttp = await through(listeners.HTTP, headers);
    expect(overHttp).toEqual(overRpc);
    expect(overHttp.seen.length).toBeGreaterThan(0);
  });

  test.each(Object.values(Code).filter((code): code is Code => typeof code === "number"))(
    "error code %i has the same status",
    async (code) => {
      implementation = () => {
        throw new ConnectError("m", code, { "x-meta": "1", "content-type": "text/evil" });
      };
      const overRpc = await through(listeners.RPC);
      const overHttp = await through(listeners.HTTP);
      expect(overHttp).toEqual(overRpc);
    },
  );

  test("the message of an unexpected error is not exposed", async () => {
    implementation = () => {
      throw new Error("secret");
    };
    expect(await through(listeners.HTTP)).toEqual(await through(listeners.RPC));
  });

  test("a deadline reaches and aborts the implementation", async () => {
    for (const path of Object.values(listeners)) {
      let reason: unknown;
      implementation = async (_, { signal, timeoutMs }) => {
        // The time left is at most 30 ms. On a busy machine it may be used up before the implementation runs.
        expect(timeoutMs()).toBeLessThanOrEqual(30);
        if (!signal.aborted) await once(signal, "abort");
        reason = signal.reason;
        throw signal.reason;
      };
      const response = await through(path, { "connect-timeout-ms": "30" });
      expect([response.status, response.body]).toEqual([504, "the operation timed out"]);
      expect(ConnectError.from(reason).code).toBe(Code.DeadlineExceeded);
    }
  });

  test("a disconnecting client aborts the implementation", async () => {
    for (const path of Object.values(listeners)) {
      const caller = new AbortController();
      const aborted = new Promise<boolean>((resolve) => {
        implementation = async (request, { signal }) => {
          signal.addEventListener("abort", () => resolve(signal.aborted));
          caller.abort();
          await once(signal, "abort");
          return request;
        };
      });
      await expect(
        fetch(origin + path, {
          method: "POST",
          body: "{}",
          headers: { "content-type": "application/json" },
          signal: caller.signal,
        }),
      ).rejects.toThrow();
      expect(await aborted).toBe(true);
    }
  });

  test("the end of the call aborts its signal", async () => {
    for (const path of Object.values(listeners)) {
      let kept: AbortSignal | undefined;
      let context: HandlerContext | undefined;
      implementation = (request, ctx) => {
        kept = ctx.signal;
        context = ctx;
        return request;
      };
      await through(path);
      expect([kept?.aborted, context?.signal.aborted]).toEqual([true, true]);
    }
  });

  test("missing fields of a returned message get their defaults", async () => {
    implementation = () => ({ ...create(EverythingSchema), int32Value: 4 });
    expect(await through(listeners.HTTP)).toEqual(await through(listeners.RPC));
  });

  test("an RPC without an implementation returns unimplemented", async () => {
    const overRpc = await through("/rich.v1.RichService/Misbehave", {}, "{}");
    const overHttp = await through("/v1/misbehave", {}, "{}");
    expect(overHttp).toEqual(overRpc);
    expect(overHttp.status).toBe(501);
  });
});

describe("the option refuse", () => {
  const closed = new ConnectError("closed", Code.ResourceExhausted);
  test.each([
    ["an error", () => closed, 429],
    ["a promise of an error", () => Promise.resolve(closed), 429],
    ["nothing", () => undefined, 200],
    ["a promise of nothing", () => Promise.resolve(undefined), 200],
  ])("decides in place of a gate, by %s", async (_, refuse, status) => {
    let calls = 0;
    const layer = createHttpHandler({
      routes: (router) =>
        router.service(RichService, {
          echo: (request) => {
            calls++;
            return request;
          },
        }),
      tables: [createRoutes(RichService)],
      requestGate: () => Promise.reject(new ConnectError("the gate was asked", Code.Internal)),
      refuse,
    });
    const server = createServer(layer).listen(0, "127.0.0.1");
    await once(server, "listening");
    const at = `http://127.0.0.1:${(server.address() as AddressInfo).port}${listeners.HTTP}`;
    const headers = { "content-type": "application/json" };
    const response = await fetch(at, { method: "POST", body: '{"stringValue":"x"}', headers });
    const text = await response.text();
    server.close();
    server.closeAllConnections();
    expect([response.status, calls, text.includes("closed")]).toEqual([status, status === 200 ? 1 : 0, status !== 200]);
  });
});

describe("options of one service", () => {
  const marked =
    (mark: string): Interceptor =>
    (next) =>
    async (req) => {
      const response = await next(req);
      response.header.append("x-mark", mark);
      return response;
    };
  test.each([
    ["replace the interceptors of all", { interceptors: [marked("own")] }],
    ["replace them by none", { interceptors: [] }],
    ["without interceptors leave those of all", { maxTimeoutMs: 10 }],
    ["that are absent leave all as it is", undefined],
    ["limit the body", { readMaxBytes: 5 }],
    ["limit the deadline", { maxTimeoutMs: 10 }],
    ["write JSON in their own way", { jsonOptions: { useProtoFieldName: true, alwaysEmitImplicit: true } }],
    ["have a gate", { requestGate: () => Promise.reject(new ConnectError("closed", Code.ResourceExhausted)) }],
  ])("%s", async (what, own) => {
    const register = (router: ConnectRouter) => {
      router.service(RichService, { echo: (request) => request }, own);
    };
    const root = { routes: register, interceptors: [marked("root")] };
    const adapter = connectNodeAdapter({ ...root });
    const layer = createHttpHandler({
      ...root,
      tables: [createRoutes(RichService)],
      fallback: adapter,
    });
    const own_ = createServer(layer).listen(0, "127.0.0.1");
    await once(own_, "listening");
    const at = `http://127.0.0.1:${(own_.address() as AddressInfo).port}`;
    const fetchRaw = async (path: string) => {
      const headers = {
        "content-type": "application/json",
        "connect-timeout-ms": what.includes("deadline") ? "20" : "5",
      };
      const response = await fetch(at + path, { method: "POST", body: '{"stringValue":"x"}', headers });
      return {
        status: response.status,
        mark: response.headers.get("x-mark"),
        body: response.ok ? await response.json() : {},
      };
    };
    const [overRpc, overHttp] = [await fetchRaw(listeners.RPC), await fetchRaw(listeners.HTTP)];
    own_.close();
    own_.closeAllConnections();
    // If the body is too large, the RPC endpoint returns 429, because the Connect protocol has no other status for resource_exhausted. The
    // HTTP route returns 413.
    if (what === "limit the body") expect([overRpc.status, overHttp.status]).toEqual([429, 413]);
    else expect(overHttp).toEqual(overRpc);
  });
});

describe("a handler", () => {
  test("requires the services of its tables to be registered", () => {
    expect(() => createHttpHandler({ routes: () => {}, tables: [createRoutes(RichService)] })).toThrow(
      "rich.v1.RichService, but the service is not registered",
    );
  });
  test.each([
    [{ body: "gone" }, 'message rich.v1.Everything has no field "gone": generate the routes again'],
    [{ responseBody: "gone" }, 'message rich.v1.Everything has no field "gone": generate the routes again'],
    [
      { variables: [{ field: "gone", start: 0, end: 1, multi: false }] },
      'has no field "gone": generate the routes again',
    ],
    [{ rpc: "gone" }, "rich.v1.RichService has no RPC gone"],
  ])("refuses a table that does not match the descriptors: %j", (change, message) => {
    const { service, routes: all } = createRoutes(RichService);
    const [first] = all;
    if (first === undefined) throw new Error("no routes");
    const table = { service, routes: [{ ...first, ...change }] };
    expect(() => createHttpHandler({ routes, tables: [table] })).toThrow(message);
  });
  test("responds 500 if a hook or an encoder throws", async () => {
    const broken = () => {
      throw new Error("broken");
    };
    for (const fault of [{ onResponse: broken }, { failureEncoder: broken }]) {
      const layer = createHttpHandler({ routes, tables: [createRoutes(RichService)], ...fault });
      const own = createServer(layer).listen(0, "127.0.0.1");
      await once(own, "listening");
      const at = `http://127.0.0.1:${(own.address() as AddressInfo).port}`;
      expect((await fetch(`${at}/nowhere`)).status).toBe(500);
      expect((await fetch(`${at}/nowhere`)).status).toBe(500);
      own.close();
      own.closeAllConnections();
    }
  });
  test("serves only the registered RPCs", async () => {
    const routesOfOne = (router: ConnectRouter) => void router.rpc(RichService.method.echo, (request) => request);
    const found: (string | undefined)[] = [];
    const layer = createHttpHandler({
      routes: routesOfOne,
      tables: [createRoutes(RichService)],
      onResponse: (_, { rpc: method, failure }) => found.push(method?.name ?? failure?.kind),
    });
    const own = createServer(layer).listen(0, "127.0.0.1");
    await once(own, "listening");
    const at = `http://127.0.0.1:${(own.address() as AddressInfo).port}`;
    expect((await fetch(`${at}/v1/echo`)).status).toBe(200);
    expect((await fetch(`${at}/v1/count/1`)).status).toBe(404);
    own.close();
    own.closeAllConnections();
    expect(found).toEqual(["Echo", "no_route"]);
  });
});
