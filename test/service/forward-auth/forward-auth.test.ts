/** The command `forward-auth`: its responses over HTTP and gRPC while the service is available and while it is not. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { Client, credentials } from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AccessTokenPolicy } from "../../../gen/auth/admin/v1/session_admin_pb.ts";
import {
  CheckRequestSchema,
  type CheckResponse,
  CheckResponseSchema,
} from "../../../gen/envoy/service/auth/v3/external_auth_pb.ts";
import { createCheck } from "../../../src/service/forward-auth/check.ts";
import type { Claims } from "../../../src/verifier/index.ts";
import { servesAfterCancelling } from "../../support/cancelled-streams.ts";
import { clientKey, dpop } from "../../support/dpop.ts";
import { freePort } from "../../support/free-port.ts";
import { request } from "../../support/raw-http.ts";
import { type Service, scratch, startService } from "../../support/service.ts";
import { admin, bearer, cookie, logIn, message, openAdmin } from "../../support/sessions.ts";
import { until } from "../../support/until.ts";
import { command } from "../cli/command.ts";
import { type ForwardAuth, launchForwardAuth, startForwardAuth } from "./command.ts";

const ISSUER = "https://app.example.com";

const OPTIONS = [
  "--metrics-host",
  "metrics.corp.com",
  "--cookie",
  "access_token",
  "--origin",
  "https://Other.example:443",
  ISSUER,
];

let service: Service;
let forwardAuth: ForwardAuth;
beforeAll(async () => {
  service = await startService({ ISSUER });
  forwardAuth = await startForwardAuth(service, ISSUER, ...OPTIONS, "--refuse");
});
afterAll(async () => {
  await forwardAuth?.stop();
  await service?.stop();
});

const NOWHERE = { method: undefined, host: undefined, path: undefined };

const claimsOf = (token: string) =>
  JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString()) as Claims;
const check = (headers: Readonly<Record<string, string>>, path = "/check") =>
  request(forwardAuth.url, { path, headers });
const logOut = (accessToken: string) =>
  request(service.publicUrl, { method: "DELETE", path: "/v1/auth/logout", headers: bearer(accessToken) });

describe("over HTTP", () => {
  test("every response says why, and may not be kept", async () => {
    const { accessToken } = await logIn(service);
    const responses = [
      await check(bearer(accessToken)),
      await check({}),
      await check(bearer("x")),
      await check({ authorization: "Basic eDp5" }),
      await check(bearer(`${accessToken.slice(0, -4)}AAAA`)),
    ];
    expect(responses.map(({ status, headers }) => [status, headers.get("x-auth-reason")])).toEqual([
      [200, null],
      [401, "absent"],
      [401, "malformed"],
      [401, "malformed"],
      [401, "forged"],
    ]);
    for (const { headers } of responses) expect(headers.get("cache-control")).toBe("no-store");
  });

  test("the path of the request may follow, as Envoy sends it", async () => {
    const { accessToken } = await logIn(service);
    expect((await check(bearer(accessToken), "/check/v1/orders?of=alice")).status).toBe(200);
    expect((await check(bearer(accessToken), "/checks")).status).not.toBe(200);
  });

  test("an ended session is refused as soon as the feed has it", async () => {
    const { accessToken } = await logIn(service);
    expect((await check(bearer(accessToken))).status).toBe(200);
    await logOut(accessToken);
    await until(async () => expect((await check(bearer(accessToken))).headers.get("x-auth-reason")).toBe("revoked"));
  });

  test("a token from before a change of its session is refused, which the challenge says, and the next one passes", async () => {
    const { accessToken, refreshToken, sid } = await logIn(service);
    const reasonOf = async (token: string) => (await check(bearer(token))).headers.get("x-auth-reason");
    expect(await reasonOf(accessToken)).toBeNull();
    const update = { sessionId: sid, claims: { role: "user" }, accessTokens: AccessTokenPolicy.REFRESH };
    message(await openAdmin(service).call(admin.updateSession, update, bearer(service.adminToken)));
    await until(async () => expect(await reasonOf(accessToken)).toBe("stale"));
    const { status, headers } = await check({ cookie: `access_token=${accessToken}` });
    const challenge = 'Bearer error="invalid_token", error_description="stale"';
    expect([status, headers.get("www-authenticate")]).toEqual([401, challenge]);
    const refreshed = await fetch(`${service.publicUrl}/v1/auth/refresh`, {
      method: "POST",
      headers: cookie(refreshToken),
    });
    const { data } = (await refreshed.json()) as { data: { accessToken: string } };
    const passed = await check(bearer(data.accessToken));
    const claims = JSON.parse(Buffer.from(passed.headers.get("x-auth-claims") ?? "", "base64url").toString());
    expect(claims).toMatchObject({ sid, role: "user" });
  });

  test("the token may be in a cookie, but a header comes first", async () => {
    const [alice, bob] = [await logIn(service, { subject: "alice" }), await logIn(service, { subject: "bob" })];
    const subject = async (headers: Readonly<Record<string, string>>) =>
      (await check(headers)).headers.get("x-auth-subject");
    expect(await subject({ cookie: `a=b; access_token=${alice.accessToken}` })).toBe("alice");
    expect(await subject({ cookie: `access_token=${alice.accessToken}`, ...bearer(bob.accessToken) })).toBe("bob");
  });

  test("of several cookies the good one counts, unless they are of two users: one of them may have been planted", async () => {
    const [alice, again] = [await logIn(service, { subject: "alice" }), await logIn(service, { subject: "alice" })];
    const bob = await logIn(service, { subject: "bob" });
    const reply = async (...tokens: readonly string[]) => {
      const cookie = tokens.map((token) => `access_token=${token}`).join("; ");
      const { status, headers } = await check({ cookie });
      return headers.get("x-auth-subject") ?? status;
    };
    expect(await reply("old", alice.accessToken)).toBe("alice");
    expect(await reply(alice.accessToken, again.accessToken)).toBe("alice");
    expect(await reply(alice.accessToken, bob.accessToken)).toBe(401);
    expect(await reply("1", "2", "3", "4", alice.accessToken)).toBe(401);
  });

  test("of several cookies none may be undecided", async () => {
    const { accessToken } = await logIn(service);
    const undecided = { ok: false, reason: "unavailable" } as const;
    const decided = { ok: true, deviceBound: false, claims: claimsOf(accessToken) } as const;
    const verify = async (token: string) => (token === accessToken ? decided : undecided);
    const judge = createCheck({ verify, verifyBound: verify }, { cookie: "access_token" });
    const cookie = `access_token=${accessToken}; access_token=other`;
    expect(await judge((name) => (name === "cookie" ? cookie : undefined), NOWHERE)).toMatchObject({ status: 503 });
  });

  test("a token that is bound to a key passes with a proof for a configured origin, and for the request", async () => {
    const key = clientKey();
    const { accessToken, sid } = await logIn(service, { dpopJkt: key.thumbprint });
    const present = async (url: string, host: string | undefined, uri = "/page", method = "POST") => {
      const { status, headers } = await check({
        authorization: `DPoP ${accessToken}`,
        dpop: dpop(key, url, { accessToken }),
        ...(host !== undefined && { "x-forwarded-host": host }),
        "x-forwarded-uri": uri,
        "x-forwarded-method": method,
      });
      return status === 200 ? headers.get("x-auth-session") : headers.get("x-auth-reason");
    };
    for (const host of ["app.example.com", "APP.example.com:443"]) {
      expect(await present(`${ISSUER}/page`, host)).toBe(sid);
    }
    expect(await present("https://other.example/page", "other.example", "/page?a=b")).toBe(sid);
    expect(await present(`${ISSUER}/page`, "app.example.com", "/page", "GET")).toBe("proof_wrong_method");
    const wrong = ["other.example", "third.example", "app.example.com:444", "app.example.com, app.example.com", ""];
    for (const host of [...wrong, "app.example.com/page?", "a@app.example.com", "app.example.com#", "[", undefined]) {
      expect([host, await present(`${ISSUER}/page`, host)]).toEqual([host, "proof_wrong_url"]);
    }
    expect(await present("https://third.example/page", "third.example")).toBe("proof_wrong_url");
    for (const uri of ["", "page", "@third.example/", "https://app.example.com/page"]) {
      expect(await present(`${ISSUER}/page`, "app.example.com", uri)).toBe("proof_wrong_url");
    }
  });

  test("it counts its decisions", async () => {
    await check({});
    const { body } = await request(forwardAuth.url, { path: "/metrics" });
    expect(body).toMatch(/^forward_auth_checks_total\{outcome="absent"\} [1-9]/m);
    expect(body).toMatch(/^forward_auth_staleness_seconds \d/m);
  });

  test("its metrics are not for a page whose name resolves to it (DNS rebinding), its probes and checks are", async () => {
    const as = async (path: string, host: string) => {
      const { status, body } = await request(forwardAuth.url, { path, headers: { host } });
      return [status, body.includes("forward_auth")];
    };
    expect(await as("/metrics", "attacker.example.com")).toEqual([421, false]);
    expect(await as("/metrics", "forward-auth.monitoring.svc:4181")).toEqual([200, true]);
    expect(await as("/metrics", "metrics.corp.com")).toEqual([200, true]);
    expect(await as("/livez", "attacker.example.com")).toEqual([200, false]);
    expect(await as("/check", "shop.attacker.com")).toEqual([401, false]);
  });
});

describe("over gRPC, as Envoy asks", () => {
  let client: Client;
  beforeAll(() => {
    client = new Client(new URL(forwardAuth.url).host, credentials.createInsecure());
  });
  afterAll(() => client.close());

  type Asked = MessageInitShape<typeof CheckRequestSchema>;
  const ask = (message: Asked) =>
    new Promise<CheckResponse>((resolve, reject) => {
      client.makeUnaryRequest(
        "/envoy.service.auth.v3.Authorization/Check",
        (asked: Asked) => Buffer.from(toBinary(CheckRequestSchema, create(CheckRequestSchema, asked))),
        (bytes: Buffer) => fromBinary(CheckResponseSchema, bytes),
        message,
        (error, response) => (response === undefined ? reject(error) : resolve(response)),
      );
    });
  const withHeaders = (headers: Record<string, string>): Asked => ({ attributes: { request: { http: { headers } } } });
  const contentOf = ({ status, httpResponse }: CheckResponse) => {
    const { value } = httpResponse;
    const headers = value?.headers.map(({ header, append }) => [header?.key, header?.value, append]) ?? [];
    return {
      code: status?.code,
      kind: httpResponse.case,
      headers: new Map(headers.map(([key, ...rest]) => [key, rest])),
    };
  };

  test("a good token passes, and the headers of the client are replaced", async () => {
    const { accessToken, sid } = await logIn(service, { subject: "alice", clientId: "web" });
    const { code, kind, headers } = contentOf(await ask(withHeaders(bearer(accessToken))));
    expect([code, kind]).toEqual([0, "okResponse"]);
    expect(headers.get("x-auth-subject")).toEqual(["alice", false]);
    expect(headers.get("x-auth-session")).toEqual([sid, false]);
    expect(headers.get("x-auth-client")).toEqual(["web", false]);
  });

  test("raw headers are read as well", async () => {
    const { accessToken } = await logIn(service, { subject: "raw" });
    const rawValue = Buffer.from(`Bearer ${accessToken}`);
    const headers = [{ key: "authorization", rawValue }];
    const reply = await ask({ attributes: { request: { http: { headerMap: { headers } } } } });
    expect(contentOf(reply).headers.get("x-auth-subject")).toEqual(["raw", false]);
  });

  test("a token that is bound to a key passes with a proof for the request that Envoy describes", async () => {
    const key = clientKey();
    const { accessToken } = await logIn(service, { subject: "bound", dpopJkt: key.thumbprint });
    const present = async (path: string, claims = {}) => {
      const proof = dpop(key, `${ISSUER}/page`, { accessToken, claims });
      const headers = { authorization: `DPoP ${accessToken}`, dpop: proof };
      const http = { headers, method: "POST", scheme: "http", host: "app.example.com", path };
      return contentOf(await ask({ attributes: { request: { http } } }));
    };
    expect((await present("/page?of=bound")).headers.get("x-auth-subject")).toEqual(["bound", false]);
    const { kind, headers } = await present("/another");
    expect(kind).toBe("deniedResponse");
    expect(headers.get("www-authenticate")).toEqual([
      'DPoP error="invalid_dpop_proof", algs="ES256 RS256 EdDSA Ed25519"',
      false,
    ]);
    expect((await present("/page", { htm: "GET" })).headers.get("x-auth-reason")).toEqual([
      "proof_wrong_method",
      false,
    ]);
  });

  test("an absent and a bad token are denied, with the challenge for the client", async () => {
    for (const [headers, challenge] of [
      [{}, "Bearer"],
      [bearer("x"), 'Bearer error="invalid_token"'],
    ] as const) {
      const response = await ask(withHeaders(headers));
      const { code, kind, headers: given } = contentOf(response);
      expect([code, kind]).toEqual([16, "deniedResponse"]);
      expect(given.get("www-authenticate")).toEqual([challenge, false]);
      expect(response.httpResponse.value).toMatchObject({ status: { code: 401 } });
    }
    expect(contentOf(await ask({})).code).toBe(16);
  });

  test("a question above 1 MiB is refused", async () => {
    await expect(ask(withHeaders({ long: "x".repeat(1_100_000) }))).rejects.toMatchObject({ code: 8 });
  });
});

test("clients that disconnect do not end the connection on which the gateway asks about others", async () => {
  const path = "/envoy.service.auth.v3.Authorization/Check";
  expect(await servesAfterCancelling(forwardAuth.url, "POST", path)).toBe(true);
});

describe("without the service", () => {
  test("what cannot be decided is 503, and it is not ready; both end when the service is back", async () => {
    const own = await startService({ ISSUER, ADMIN_PORT: String(await freePort()) });
    const checked = await startForwardAuth(own, ISSUER, "--refuse");
    const get = (path: string, headers = {}) => request(checked.url, { path, headers });
    const { accessToken } = await logIn(own);
    expect((await get("/check", bearer(accessToken))).status).toBe(200);
    await own.kill9();
    await until(async () => expect((await get("/check", bearer(accessToken))).status).toBe(503));
    const { headers } = await get("/check", bearer(accessToken));
    expect([headers.get("retry-after"), headers.get("x-auth-reason")]).toEqual(["1", "unavailable"]);
    expect((await get("/readyz")).status).toBe(503);
    expect((await get("/livez")).status).toBe(200);
    const again = await own.restart();
    await until(async () => expect((await get("/check", bearer(accessToken))).status).toBe(200));
    checked.kill("SIGTERM");
    expect(await checked.exited).toBe(0);
    await again.stop();
  });

  test("it becomes ready once an admin token that was refused at its start is replaced", async () => {
    const tokenFile = join(scratch(), "token");
    writeFileSync(tokenFile, "refused".repeat(5));
    const checked = await launchForwardAuth(service, ISSUER, "--token-file", tokenFile);
    const isReady = async () => (await request(checked.url, { path: "/readyz" })).status;
    await until(() => expect(checked.output()).toContain("refused_by_service"));
    expect(await isReady()).toBe(503);
    writeFileSync(tokenFile, service.adminToken);
    await until(async () => expect(await isReady()).toBe(200));
    await checked.stop();
  });

  test("it starts before the service, and says what is wrong with its arguments", async () => {
    const started = await launchForwardAuth({ ...service, adminUrl: "http://127.0.0.1:9" }, ISSUER);
    expect((await request(started.url, { path: "/check", headers: bearer("x") })).status).toBe(401);
    expect((await request(started.url, { path: "/readyz" })).status).toBe(503);
    started.kill("SIGTERM");
    expect(await started.exited).toBe(0);
    // The endpoint stopped before the service had sent anything. This must not count as a refusal by the service.
    expect(started.output()).not.toContain("refused_by_service");
    const env = { ADMIN_TOKEN: service.adminToken };
    expect(await command(["forward-auth"], { env })).toMatchObject({ code: 2 });
    expect(await command(["forward-auth", "--issuer", "x", "--port", "70000"], { env })).toMatchObject({ code: 2 });
    for (const alone of ["--refresh-cookie", "--reuse-interval", "--sign-in"]) {
      const refused = await command(["forward-auth", "--issuer", "x", alone, "10s"], { env });
      expect(refused).toMatchObject({ code: 2, err: expect.stringContaining(`${alone} needs --refresh`) });
    }
    const refused = await command(["forward-auth", "--issuer", "x", "--refresh", "http://a:secret@b"], { env });
    expect(refused).toMatchObject({ code: 2, err: expect.not.stringContaining("secret") });
    const taken = new URL(forwardAuth.url).port;
    expect(await command(["forward-auth", "--issuer", "x", "--port", taken], { env })).toMatchObject({ code: 1 });
  });
});
