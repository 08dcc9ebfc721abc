import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Code, ConnectError, createClient, createRouterTransport } from "@connectrpc/connect";
import Fastify from "fastify";
import { describe, expect, it, onTestFinished } from "vitest";
import { SessionService } from "../../gen/auth/v1/session_pb.ts";
import {
  accessTokenHook,
  accessTokenInterceptor,
  accessTokenMiddleware,
  callerClaims,
  callerOf,
  type Verifier,
} from "../../src/verifier/index.ts";
import { follow, type Issuer, startIssuer } from "./support.ts";

type Answer = { status: number; caller: string | undefined; challenge: string | null; retryAfter: string | null };
type Ask = (authorization: string | undefined) => Promise<Answer>;

async function viaHttp(url: string, authorization: string | undefined): Promise<Answer> {
  const answer = await fetch(url, authorization === undefined ? {} : { headers: { authorization } });
  const body = (await answer.json()) as { sub?: string };
  const { status, headers } = answer;
  return {
    status,
    caller: body.sub,
    challenge: headers.get("www-authenticate"),
    retryAfter: headers.get("retry-after"),
  };
}

/** A service of each kind that tells its caller who it takes it for. */
const SERVICES: Record<string, (verifier: Verifier) => Promise<Ask>> = {
  async middleware(verifier) {
    const guard = accessTokenMiddleware(verifier);
    const server = createServer((request, response) =>
      guard(request, response, () => response.end(JSON.stringify({ sub: callerOf(request)?.sub }))),
    ).listen(0, "127.0.0.1");
    await once(server, "listening");
    onTestFinished(() => void server.close());
    return (authorization) => viaHttp(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, authorization);
  },

  async fastify(verifier) {
    const app = Fastify();
    app.addHook("onRequest", accessTokenHook(verifier));
    app.get("/", (request) => ({ sub: callerOf(request)?.sub }));
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
        const answer = await client.refresh({}, authorization === undefined ? {} : { headers: { authorization } });
        return { status: 200, caller: answer.data?.accessToken, challenge: null, retryAfter: null };
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
  async function service(): Promise<{ issuer: Issuer; verifier: Verifier; ask: Ask }> {
    const issuer = await startIssuer();
    const { verifier } = follow(issuer, { policy: "refuse" });
    return { issuer, verifier, ask: await start(verifier) };
  }

  it("serves the bearer of a good token, and knows who it is", async () => {
    const { issuer, verifier, ask } = await service();
    await verifier.ready;
    const { token } = issuer.token();
    const served = { status: 200, caller: "user-1", challenge: null, retryAfter: null };
    expect(await ask(`Bearer ${token}`)).toEqual(served);
    expect(await ask(`bearer  ${token}`)).toEqual(served);
  });

  it("challenges whoever brings no token, and says when a token is bad", async () => {
    const { issuer, verifier, ask } = await service();
    await verifier.ready;
    const { sid, token } = issuer.token();
    issuer.revoke(sid);
    await expect.poll(() => verifier.verify(token)).toMatchObject({ reason: "revoked" });
    const bad = { status: 401, caller: undefined, challenge: 'Bearer error="invalid_token"', retryAfter: null };
    expect(await ask(undefined)).toEqual({ ...bad, challenge: "Bearer" });
    for (const authorization of [
      `Bearer ${token}`,
      "Bearer x",
      "Basic dTpw",
      "Bearer",
      `Bearer ${token} ${token}`,
      token,
    ]) {
      expect(await ask(authorization)).toEqual(bad);
    }
  });

  it("asks for patience while it cannot know", async () => {
    const issuer = await startIssuer();
    issuer.state.answering = false;
    const { verifier } = follow(issuer, { policy: "refuse" });
    const ask = await start(verifier);
    const unknown = { status: 503, caller: undefined, challenge: null, retryAfter: "1" };
    expect(await ask(`Bearer ${issuer.token().token}`)).toEqual(unknown);
  });
});
