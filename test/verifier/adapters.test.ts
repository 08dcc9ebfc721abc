import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Code, ConnectError, createClient, createRouterTransport } from "@connectrpc/connect";
import Fastify from "fastify";
import { describe, expect, onTestFinished, test } from "vitest";
import { SessionService } from "../../gen/auth/v1/session_pb.ts";
import {
  accessTokenHook,
  accessTokenInterceptor,
  accessTokenMiddleware,
  callerClaims,
  getCallerClaims,
  type Verifier,
} from "../../src/verifier/index.ts";
import { until } from "../support/until.ts";
import { follow } from "../support/verifier/follow.ts";
import { type Issuer, startIssuer } from "../support/verifier/issuer.ts";

type Result = { status: number; caller: string | undefined; challenge: string | null; retryAfter: string | null };
type Call = (authorization: string | undefined) => Promise<Result>;

async function viaHttp(url: string, authorization: string | undefined): Promise<Result> {
  const response = await fetch(url, authorization === undefined ? {} : { headers: { authorization } });
  const body = (await response.json()) as { sub?: string };
  const { status, headers } = response;
  return {
    status,
    caller: body.sub,
    challenge: headers.get("www-authenticate"),
    retryAfter: headers.get("retry-after"),
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
    return (authorization) => viaHttp(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, authorization);
  },

  async fastify(verifier) {
    const app = Fastify();
    app.addHook("onRequest", accessTokenHook(verifier));
    app.get("/", (request) => ({ sub: getCallerClaims(request)?.sub }));
    const url = await app.listen({ port: 0, host: "127.0.0.1" });
    onTestFinished(() => app.close());
    return (authorization) => viaHttp(url, authorization);
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
    return async (authorization) => {
      try {
        const response = await client.refresh({}, authorization === undefined ? {} : { headers: { authorization } });
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
    expect(await call(undefined)).toEqual({ ...rejected, challenge: "Bearer" });
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

  test("responds 503 with Retry-After while the verdict is unavailable", async () => {
    const issuer = await startIssuer();
    issuer.state.isUp = false;
    const { verifier } = follow(issuer, { policy: "refuse" });
    const call = await start(verifier);
    const unavailable = { status: 503, caller: undefined, challenge: null, retryAfter: "1" };
    expect(await call(`Bearer ${issuer.issue().token}`)).toEqual(unavailable);
  });
});
