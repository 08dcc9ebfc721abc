import { once } from "node:events";
import { createServer, get, type IncomingMessage, request } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { Code, ConnectError, createClient, createRouterTransport } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import Fastify from "fastify";
import { describe, expect, onTestFinished, test } from "vitest";
import { SessionService } from "../../gen/auth/v1/session_pb.ts";
import {
  accessTokenHook,
  accessTokenInterceptor,
  accessTokenMiddleware,
  callerClaims,
  getCallerClaims,
  keepRawHeaders,
  type Verifier,
} from "../../src/verifier/index.ts";
import { until } from "../support/until.ts";
import { follow } from "../support/verifier/follow.ts";
import { type Issuer, startIssuer } from "../support/verifier/issuer.ts";

type Result = { status: number; caller: string | undefined; challenge: string | null; retryAfter: string | null };
type Call = (...authorizations: readonly string[]) => Promise<Result>;

/** Each authorization is a header of its own, which `fetch` would join. */
async function viaHttp(url: string, authorization: readonly string[]): Promise<Result> {
  const headers = ["host", new URL(url).host, ...authorization.flatMap((each) => ["authorization", each])];
  const [response] = (await once(get(url, { headers }), "response")) as [IncomingMessage];
  return {
    status: response.statusCode ?? 0,
    caller: ((await json(response)) as { sub?: string }).sub,
    challenge: response.headers["www-authenticate"] ?? null,
    retryAfter: response.headers["retry-after"] ?? null,
  };
}

/** Services that each use one adapter of the verifier, and return the subject of the caller. */
const SERVICES: Record<string, (verifier: Verifier) => Promise<Call>> = {
  async middleware(verifier) {
    const guard = accessTokenMiddleware(verifier);
    const server = createServer((request, response) =>
      guard(request, response, () => response.end(JSON.stringify({ sub: getCallerClaims(request)?.sub }))),
    ).listen(0, "127.0.0.1");
    await once(server, "listening");
    onTestFinished(() => void server.close());
    return (...authorizations) => viaHttp(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, authorizations);
  },

  async fastify(verifier) {
    const app = Fastify();
    app.addHook("onRequest", accessTokenHook(verifier));
    app.get("/", (request) => ({ sub: getCallerClaims(request)?.sub }));
    const url = await app.listen({ port: 0, host: "127.0.0.1" });
    onTestFinished(() => app.close());
    return (...authorizations) => viaHttp(url, authorizations);
  },

  async "connect on Node"(verifier) {
    const handler = connectNodeAdapter({
      routes: ({ service }) =>
        service(SessionService, {
          refresh: (_, { values }) => ({ data: { accessToken: values.get(callerClaims)?.sub ?? "" } }),
        }),
      interceptors: [accessTokenInterceptor(verifier)],
      contextValues: keepRawHeaders,
    });
    const server = createServer(handler).listen(0, "127.0.0.1");
    await once(server, "listening");
    onTestFinished(() => void server.close());
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/auth.v1.SessionService/Refresh`;
    return async (...authorizations) => {
      const headers = ["host", new URL(url).host, "content-type", "application/json"];
      for (const each of authorizations) headers.push("authorization", each);
      const call = request(url, { method: "POST", headers });
      call.end("{}");
      const [response] = (await once(call, "response")) as [IncomingMessage];
      const { data } = (await json(response)) as { data?: { accessToken?: string } };
      return {
        status: response.statusCode ?? 0,
        caller: data?.accessToken,
        challenge: response.headers["www-authenticate"] ?? null,
        retryAfter: response.headers["retry-after"] ?? null,
      };
    };
  },

  async connect(verifier) {
    const transport = createRouterTransport(
      ({ service }) =>
        service(SessionService, {
          refresh: (_, { values }) => ({ data: { accessToken: values.get(callerClaims)?.sub ?? "" } }),
        }),
      { router: { interceptors: [accessTokenInterceptor(verifier)] } },
    );
    const client = createClient(SessionService, transport);
    return async (...authorizations) => {
      try {
        const response = await client.refresh(
          {},
          {
            headers: authorizations.map((each): [string, string] => ["authorization", each]),
          },
        );
        return { status: 200, caller: response.data?.accessToken, challenge: null, retryAfter: null };
      } catch (error) {
        const { code, metadata } = ConnectError.from(error);
        const status = code === Code.Unauthenticated ? 401 : code === Code.Unavailable ? 503 : 500;
        const [challenge, retryAfter] = [metadata.get("www-authenticate"), metadata.get("retry-after")];
        return { status, caller: undefined, challenge, retryAfter };
      }
    };
  },
};

test("the middleware leaves a response alone that began before the verdict", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const { verifier } = follow(await startIssuer());
  const guarded = new Promise((resolve, reject) => {
    server.once("request", (request, response) => {
      const guard = accessTokenMiddleware({
        ...verifier,
        async verify(token) {
          const verdict = await verifier.verify(token);
          response.writeHead(503).end("the time is up");
          return verdict;
        },
      });
      guard(request, response, () => reject(new Error("it was accepted"))).then(resolve, reject);
    });
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const response = await fetch(url, { headers: { authorization: "Bearer x" } });
  expect([response.status, await response.text()]).toEqual([503, "the time is up"]);
  await guarded;
});

describe.each(Object.entries(SERVICES))("a service behind the %s", (_, start) => {
  async function service(): Promise<{ issuer: Issuer; verifier: Verifier; call: Call }> {
    const issuer = await startIssuer();
    const { verifier } = follow(issuer, { policy: "refuse" });
    return { issuer, verifier, call: await start(verifier) };
  }

  test("accepts a valid token, and has its claims", async () => {
    const { issuer, verifier, call } = await service();
    await verifier.ready;
    const { token } = issuer.issue();
    const served = { status: 200, caller: "user-1", challenge: null, retryAfter: null };
    expect(await call(`Bearer ${token}`)).toEqual(served);
    expect(await call(`bearer  ${token}`)).toEqual(served);
  });

  test("challenges a request without a token, and one with an invalid token", async () => {
    const { issuer, verifier, call } = await service();
    await verifier.ready;
    const { sid, token } = issuer.issue();
    issuer.revoke(sid);
    await until(async () => expect(await verifier.verify(token)).toMatchObject({ reason: "revoked" }));
    const rejected = { status: 401, caller: undefined, challenge: 'Bearer error="invalid_token"', retryAfter: null };
    expect(await call()).toEqual({ ...rejected, challenge: "Bearer" });
    for (const authorization of [
      `Bearer ${token}`,
      "Bearer x",
      "Basic dTpw",
      "Bearer",
      `Bearer ${token} ${token}`,
      token,
    ]) {
      expect(await call(authorization)).toEqual(rejected);
    }
  });

  test("refuses several tokens, of which a proxy may have read another one", async () => {
    const { issuer, verifier, call } = await service();
    await verifier.ready;
    const authorization = `Bearer ${issuer.issue().token}`;
    expect((await call(authorization)).status).toBe(200);
    for (const several of [
      [authorization, authorization],
      [authorization, "Bearer x"],
    ]) {
      expect((await call(...several)).status).toBe(401);
    }
  });

  test("responds 503 with Retry-After while the verdict is unavailable", async () => {
    const issuer = await startIssuer();
    issuer.state.isUp = false;
    const { verifier } = follow(issuer, { policy: "refuse" });
    const call = await start(verifier);
    const unavailable = { status: 503, caller: undefined, challenge: null, retryAfter: "1" };
    expect(await call(`Bearer ${issuer.issue().token}`)).toEqual(unavailable);
  });
});
