/** Access tokens that are bound to a key (DPoP, RFC 9449 section 7) are accepted only with a proof for the request. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { createClient } from "@connectrpc/connect";
import { connectNodeAdapter, createConnectTransport } from "@connectrpc/connect-node";
import Fastify from "fastify";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { SessionService } from "../../gen/auth/v1/session_pb.ts";
import { thumbprintBytes } from "../../src/service/session/devices/key.ts";
import { storeMs } from "../../src/service/session/time.ts";
import {
  accessTokenHook,
  accessTokenInterceptor,
  accessTokenMiddleware,
  authorize,
  callerClaims,
  getCallerClaims,
  type Verifier,
} from "../../src/verifier/index.ts";
import { createVerifier as createWebVerifier } from "../../src/verifier/web/index.ts";
import { type Change, clientKey, dpop } from "../support/dpop.ts";
import { follow } from "../support/verifier/follow.ts";
import { AUDIENCE, ISSUER, type Issuer, startIssuer } from "../support/verifier/issuer.ts";

let issuer: Issuer;
beforeEach(async () => {
  issuer = await startIssuer();
});

const ORIGIN = "https://api.example";
const URL_OF_THINGS = `${ORIGIN}/things`;
const key = clientKey();

function issueBound(jkt = key.thumbprint) {
  const bound = { algorithm: "DPoP", thumbprint: thumbprintBytes(jkt) } as const;
  return issuer.issue({ device: { key: bound, state: "bound", since: storeMs(0) } });
}

const webVerifier = () => {
  const verifier = createWebVerifier({ jwksUrl: issuer.jwksUrl, issuer: ISSUER, audience: AUDIENCE });
  onTestFinished(() => verifier.close());
  return verifier;
};

describe.each([
  ["Node", () => follow(issuer).verifier],
  ["WebCrypto", webVerifier],
])("by %s", (_, createVerifier) => {
  async function judge(verifier: Verifier, token: string, proof: string | undefined, scheme = "DPoP") {
    const headers = new Headers({ authorization: `${scheme} ${token}`, ...(proof !== undefined && { dpop: proof }) });
    const caller = await authorize(verifier, { method: "POST", url: `${URL_OF_THINGS}?a=b`, headers });
    return caller.ok ? "ok" : [caller.status, caller.reason, caller.headers["www-authenticate"]?.split(",")[0]];
  }
  const proof = (token: string, change: Change = {}, by = key) =>
    dpop(by, URL_OF_THINGS, { accessToken: token, ...change });
  const BAD_PROOF = 'DPoP error="invalid_dpop_proof"';

  test("a token is accepted with a proof of its key, once", async () => {
    const verifier = createVerifier();
    const { token } = issueBound();
    const one = proof(token);
    expect(await judge(verifier, token, one)).toBe("ok");
    expect(await judge(verifier, token, one)).toEqual([401, "proof_replayed", BAD_PROOF]);
    expect(await judge(verifier, token, proof(token))).toBe("ok");
  });

  test("as a bearer token it is refused, and by its text alone", async () => {
    const verifier = createVerifier();
    const { token } = issueBound();
    expect(await judge(verifier, token, proof(token))).toBe("ok");
    for (const scheme of ["Bearer", "bearer"]) {
      expect(await judge(verifier, token, proof(token), scheme)).toEqual([
        401,
        "not_bearer",
        'Bearer error="invalid_token"',
      ]);
    }
    expect(await authorize(verifier, `Bearer ${token}`)).toMatchObject({ ok: false, reason: "not_bearer" });
    expect(await authorize(verifier, `DPoP ${token}`)).toMatchObject({ ok: false, reason: "malformed" });
  });

  test("a bearer token is refused with the scheme DPoP, and accepted without", async () => {
    const verifier = createVerifier();
    const { token } = issuer.issue();
    expect(await judge(verifier, token, proof(token))).toEqual([401, "proof_other_key", BAD_PROOF]);
    expect(await judge(verifier, token, undefined, "Bearer")).toBe("ok");
  });

  test("every other proof is refused with its reason", async () => {
    const verifier = createVerifier();
    const { token } = issueBound();
    const now = Math.floor(Date.now() / 1000);
    const cases = {
      proof_absent: undefined,
      proof_ambiguous: `${proof(token)}, ${proof(token)}`,
      proof_malformed: "x",
      proof_wrong_token: proof(issueBound().token),
      proof_wrong_method: proof(token, { claims: { htm: "GET" } }),
      proof_wrong_url: proof(token, { claims: { htu: `${ORIGIN}/other` } }),
      proof_stale: proof(token, { claims: { iat: now - 120 } }),
      proof_other_key: proof(token, {}, clientKey()),
      proof_forged: proof(token, { header: { jwk: key.jwk } }, clientKey()),
    };
    for (const [reason, text] of Object.entries(cases)) {
      expect(await judge(verifier, token, text)).toEqual([401, reason, BAD_PROOF]);
    }
    expect(await judge(verifier, `${token.slice(0, -6)}AAAAAA`, proof(token))).toEqual([
      401,
      "forged",
      'DPoP error="invalid_token"',
    ]);
  });
});

/** Services that each use one adapter of the verifier, at the path `/things`. */
const SERVICES: Record<string, (verifier: Verifier, options: { origin?: string }) => Promise<string>> = {
  async middleware(verifier, options) {
    const guard = accessTokenMiddleware(verifier, options);
    const server = createServer((request, response) =>
      guard(request, response, () => response.end(getCallerClaims(request)?.sub)),
    ).listen(0, "127.0.0.1");
    await once(server, "listening");
    onTestFinished(() => void server.close());
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  },
  async fastify(verifier, options) {
    const app = Fastify();
    app.addHook("onRequest", accessTokenHook(verifier, options));
    app.post("/things", (request) => getCallerClaims(request)?.sub);
    onTestFinished(() => app.close());
    return app.listen({ port: 0, host: "127.0.0.1" });
  },
};

test.each(Object.entries(SERVICES))("%s: needs its origin for bound tokens", async (_, open) => {
  const { verifier } = follow(issuer);
  const { token } = issueBound();
  const post = async (url: string) => {
    const headers = { authorization: `DPoP ${token}`, dpop: dpop(key, URL_OF_THINGS, { accessToken: token }) };
    return (await fetch(`${url}/things?a=b`, { method: "POST", headers })).status;
  };
  expect(await post(await open(verifier, { origin: ORIGIN }))).toBe(200);
  expect(await post(await open(verifier, {}))).toBe(401);
});

test.each(["https://api.example/", "https://API.example", "HTTPS://api.example:443/"])(
  "the origin may be spelt %s",
  async (origin) => {
    const { verifier } = follow(issuer);
    const { token } = issueBound();
    for (const open of Object.values(SERVICES)) {
      const headers = { authorization: `DPoP ${token}`, dpop: dpop(key, URL_OF_THINGS, { accessToken: token }) };
      const response = await fetch(`${await open(verifier, { origin })}/things`, { method: "POST", headers });
      expect(response.status).toBe(200);
    }
  },
);

test.each([
  ...["", "api.example", "null", "https://api.example/v1", "https://api.example/?a", "https://api.example/#a"],
  ...["https://user@api.example", "ftp://api.example", "capacitor://localhost", "https://", 5],
])("what is no origin is refused at the start: %s", (given) => {
  const { verifier } = follow(issuer);
  for (const create of [accessTokenMiddleware, accessTokenHook, accessTokenInterceptor])
    expect(() => create(verifier, { origin: given as string })).toThrow(/^origin must be one such as https:/);
});

test("a proof is for the path of the target, whatever else the target says", async () => {
  const { verifier } = follow(issuer);
  const { token } = issueBound();
  const authenticate = accessTokenMiddleware(verifier, { origin: ORIGIN });
  const judge = async (target: string, url: string) => {
    const proof = dpop(key, url, { accessToken: token });
    const request = { method: "POST", url: target, headers: { authorization: `DPoP ${token}`, dpop: proof } };
    let status = 200;
    const response = {
      writeHead: (refused: number) => {
        status = refused;
        return { end: () => {} };
      },
    };
    await authenticate(request as unknown as IncomingMessage, response as unknown as ServerResponse, () => {});
    return status;
  };
  expect(await judge("/things?a=b", URL_OF_THINGS)).toBe(200);
  expect(await judge("http://10.0.0.1:8080/things", URL_OF_THINGS)).toBe(200);
  // Node passes a target in UTF-8 on with a character for each byte.
  expect(await judge("/caf\u00c3\u00a9", `${ORIGIN}/caf%C3%A9`)).toBe(200);
  expect(await judge("/caf\u00c3\u00a9", `${ORIGIN}/café`)).toBe(200);
  expect(await judge("/caf\u00ff", `${ORIGIN}/caf%ff`)).toBe(200);
  expect(await judge(".evil.example/things", `${ORIGIN}.evil.example/things`)).toBe(401);
  expect(await judge("@evil.example/things", "https://evil.example/things")).toBe(401);
});

test("the interceptor of Connect accepts a proof for the URL of the RPC", async () => {
  const { verifier } = follow(issuer);
  const { token } = issueBound();
  const server = createServer(
    connectNodeAdapter({
      interceptors: [accessTokenInterceptor(verifier, { origin: `${ORIGIN}/` })],
      routes: (router) =>
        router.service(SessionService, {
          refresh: (_request, { values }) => ({ data: { accessToken: values.get(callerClaims)?.sub ?? "" } }),
        }),
    }),
  ).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const client = createClient(SessionService, createConnectTransport({ baseUrl, httpVersion: "1.1" }));
  const call = (htu: string) =>
    client.refresh({}, { headers: { authorization: `DPoP ${token}`, dpop: dpop(key, htu, { accessToken: token }) } });
  const { data } = await call(`${ORIGIN}/auth.v1.SessionService/Refresh`);
  expect(data?.accessToken).toBe("user-1");
  await expect(call(`${ORIGIN}/auth.v1.SessionService/Other`)).rejects.toThrow("authentication failed");
});
