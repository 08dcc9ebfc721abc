/** The client library against the real service: refresh, fetch, Connect, outages, and the end of the session. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, expect, test } from "vitest";
import { AccessTokenPolicy, Transport } from "../../gen/auth/admin/v1/session_admin_pb.ts";
import { SessionService } from "../../gen/auth/v1/session_pb.ts";
import {
  createFileStore,
  createTokenSession,
  SessionEnded,
  SessionUnavailable,
  type StoredTokens,
  type TokenStore,
} from "../../src/client/index.ts";
import { accessTokenMiddleware, createVerifier, getCallerClaims } from "../../src/verifier/index.ts";
import { PATIENCE_MS } from "../support/patience.ts";
import { type Service, startService } from "../support/service.ts";
import { admin, bearer, logIn, message, openAdmin } from "../support/sessions.ts";
import { untilTrue } from "../support/until.ts";

const directory = mkdtempSync(join(tmpdir(), "client-"));
let service: Service;
beforeAll(async () => {
  service = await startService();
});
afterAll(async () => {
  await service.stop();
  rmSync(directory, { recursive: true });
});

let count = 0;
async function signedIn(change: Partial<Parameters<typeof createTokenSession>[0]> = {}) {
  const user = await logIn(service, { clientId: "cli", transport: Transport.TOKEN });
  const path = join(directory, `${++count}.json`);
  const requests: string[] = [];
  const options = {
    service: service.publicUrl,
    clientId: "cli",
    requestTimeoutMs: PATIENCE_MS,
    store: createFileStore(path),
    fetch: (url: string | Request, init?: RequestInit) => {
      requests.push(new URL(url instanceof Request ? url.url : url).pathname);
      return fetch(url, init);
    },
    ...change,
  };
  const session = createTokenSession(options);
  await session.start(user);
  return { user, path, requests, session, another: () => createTokenSession(options) };
}

test("one refresh serves all callers of a process, and other processes find its token in the file", async () => {
  const { session, another, requests, path } = await signedIn();
  const tokens = await Promise.all(Array.from({ length: 20 }, () => session.accessToken()));
  expect(new Set([...tokens, await another().accessToken()]).size).toBe(1);
  expect(requests).toEqual(["/v1/oauth/token"]);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(readdirSync(directory).filter((name) => name.endsWith(".tmp"))).toEqual([]);
});

test("a refresh token is not spent while its successor could not be stored", async () => {
  const { user } = await signedIn();
  const requests: unknown[] = [];
  const noted: typeof fetch = (url, init) => {
    requests.push(url);
    return fetch(url, init);
  };
  // The name of the file is almost as long as file systems allow. The temporary file that would replace it has a longer name, which is not
  // allowed, so the file can be read but not replaced.
  const path = join(directory, "s".repeat(240));
  writeFileSync(path, JSON.stringify({ refreshToken: user.refreshToken }));
  const options = { service: service.publicUrl, clientId: "cli", requestTimeoutMs: PATIENCE_MS, fetch: noted };
  const session = (store: TokenStore) => createTokenSession({ ...options, store });
  await expect(session(createFileStore(path)).accessToken()).rejects.toThrow(SessionUnavailable);
  expect(requests).toEqual([]);
  const other = createFileStore(join(directory, `${++count}.json`));
  await other.save({ refreshToken: user.refreshToken });
  await session(other).accessToken();
  expect(requests).toHaveLength(1);
});

test("fetch sends the token to known origins only, and replaces one that is refused", async () => {
  const seen: (string | undefined)[] = [];
  const api = createServer((request, response) => {
    seen.push(request.headers.authorization);
    response.writeHead(seen.length === 1 ? 401 : 200).end();
  });
  await new Promise<void>((resolve) => api.listen(0, "127.0.0.1", resolve));
  const origin = `http://127.0.0.1:${(api.address() as AddressInfo).port}`;
  const { session } = await signedIn({ origins: [`${origin}/`] });
  const before = await session.accessToken();
  const response = await session.fetch(`${origin}/things`, { method: "POST", body: "a" });
  expect([response.status, seen.length, seen[0]]).toEqual([200, 2, `Bearer ${before}`]);
  expect(seen[1]).toBe(`Bearer ${await session.accessToken()}`);
  expect(seen[1]).not.toBe(seen[0]);
  await expect(session.fetch(`${service.publicUrl}/v1/auth/sessions`)).rejects.toThrow(TypeError);
  await new Promise((resolve) => api.close(resolve));
});

test("the interceptor puts the token on calls of Connect", async () => {
  const { session, user } = await signedIn();
  const transport = createConnectTransport({
    baseUrl: service.publicUrl,
    httpVersion: "1.1",
    interceptors: [session.interceptor],
  });
  const { data } = await createClient(SessionService, transport).listSessions({});
  expect(data?.sessions.map(({ sessionId }) => sessionId)).toEqual([user.sid]);
});

test("after a change of the session, a call is repeated once with a token that says what is true now", async () => {
  const { publicUrl: issuer, adminUrl, adminToken } = service;
  const verifier = createVerifier({ adminUrl, adminToken, issuer, audience: issuer, policy: "refuse" });
  await verifier.ready;
  const statuses: number[] = [];
  const authenticate = accessTokenMiddleware(verifier);
  const api = createServer((request, response) => {
    response.once("close", () => statuses.push(response.statusCode));
    void authenticate(request, response, () => response.end(String(getCallerClaims(request)?.role)));
  });
  await new Promise<void>((resolve) => api.listen(0, "127.0.0.1", resolve));
  const origin = `http://127.0.0.1:${(api.address() as AddressInfo).port}`;
  const { session, user, requests } = await signedIn({ origins: [origin] });
  const role = async () => (await session.fetch(origin)).text();
  expect(await role()).toBe("undefined");
  for (const wanted of ["admin", "user"]) {
    const before = await session.accessToken();
    const update = { sessionId: user.sid, claims: { role: wanted }, accessTokens: AccessTokenPolicy.REFRESH };
    message(await openAdmin(service).call(admin.updateSession, update, bearer(adminToken)));
    await untilTrue(async () => !(await verifier.verify(before)).ok);
    expect([await role(), await role()]).toEqual([wanted, wanted]);
  }
  expect(statuses).toEqual([200, 401, 200, 200, 401, 200, 200]);
  expect(requests.filter((path) => path === "/v1/oauth/token")).toHaveLength(3);
  verifier.close();
  await new Promise((resolve) => api.close(resolve));
});

test("the end of the session is reported as it is, and nothing is removed", async () => {
  const { session, user, path } = await signedIn();
  await session.accessToken();
  await openAdmin(service).call(admin.revokeSession, { sessionId: user.sid }, bearer(service.adminToken));
  const refused = (await session.fetch(`${service.publicUrl}/v1/auth/sessions`)).status;
  expect(refused).toBe(401);
  writeFileSync(path, JSON.stringify({ refreshToken: JSON.parse(readFileSync(path, "utf8")).refreshToken }));
  await expect(session.accessToken()).rejects.toThrow(SessionEnded);
  expect(statSync(path).isFile()).toBe(true);
});

test("a refusal is not believed while another process has stored a newer token", async () => {
  const dead = await logIn(service, { clientId: "cli" });
  await openAdmin(service).call(admin.revokeSession, { sessionId: dead.sid }, bearer(service.adminToken));
  const live = await logIn(service, { clientId: "cli" });
  const path = join(directory, `${++count}.json`);
  const store = createFileStore(path);
  const session = createTokenSession({
    service: service.publicUrl,
    clientId: "cli",
    requestTimeoutMs: PATIENCE_MS,
    store,
    async fetch(url, init) {
      const response = await fetch(url, init);
      if (response.status === 400) await store.save({ refreshToken: live.refreshToken });
      return response;
    },
  });
  await session.start(dead);
  const claims = (await session.accessToken()).split(".")[1] ?? "";
  expect(JSON.parse(Buffer.from(claims, "base64url").toString()).sid).toBe(live.sid);
});

test("a refresh that is under way writes over no new login, and not after the end", async () => {
  for (const change of ["start", "end"] as const) {
    const { refreshToken } = await logIn(service, { clientId: "cli" });
    const { refreshToken: next } = await logIn(service, { clientId: "cli" });
    let stored: StoredTokens | undefined = { refreshToken };
    const arrived = Promise.withResolvers<void>();
    const held = Promise.withResolvers<void>();
    const store: TokenStore = {
      load: async () => stored,
      async save(tokens) {
        if (tokens.access !== undefined) {
          arrived.resolve();
          await held.promise;
        }
        stored = tokens;
      },
      async clear() {
        stored = undefined;
      },
    };
    const session = createTokenSession({ service: service.publicUrl, clientId: "cli", store });
    const token = session.accessToken();
    await arrived.promise;
    const changed = change === "start" ? session.start({ refreshToken: next }) : session.end();
    held.resolve();
    await Promise.all([token, changed]);
    expect(stored).toEqual(change === "start" ? { refreshToken: next } : undefined);
  }
});

test("signing out ends the session and removes the file; afterwards there is none", async () => {
  const { session, user } = await signedIn();
  await session.end();
  await session.end();
  await expect(session.accessToken()).rejects.toThrow(SessionEnded);
  const found = await openAdmin(service).call(admin.getSession, { sessionId: user.sid }, bearer(service.adminToken));
  expect(found).toMatchObject({ ok: false, code: "E404_NOT_FOUND" });
});

test.each([
  ["no connection", () => Promise.reject(new TypeError("fetch failed")), undefined],
  [
    "503",
    async () => Response.json({ error: "temporarily_unavailable" }, { status: 503, headers: { "retry-after": "2" } }),
    2000,
  ],
  ["a page of a proxy", async () => new Response("<html>", { status: 200 }), undefined],
  ["another error", async () => Response.json({ error: "invalid_request" }, { status: 400 }), undefined],
])(
  "%s says nothing about the session: a valid token is used on, and the file stays",
  async (_, respond, retryAfterMs) => {
    let isOut = false;
    let nowMs = Date.now();
    const { session, path } = await signedIn({
      now: () => nowMs,
      fetch: (url, init) => (isOut ? respond() : fetch(url, init)),
    });
    const token = await session.accessToken();
    const { access } = JSON.parse(readFileSync(path, "utf8"));
    isOut = true;
    nowMs = access.refreshAtMs;
    expect(await session.accessToken()).toBe(token);
    nowMs = access.expiresAtMs;
    const error = await session.accessToken().catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(SessionUnavailable);
    expect(error).toMatchObject({ retryAfterMs });
    await expect(session.end()).rejects.toThrow(SessionUnavailable);
    isOut = false;
    expect(await session.accessToken()).not.toBe(token);
  },
);

test("a stored token whose age is not known, because the clock was set back, is not used while the service is away", async () => {
  let isOut = false;
  let nowMs = Date.now();
  const { session } = await signedIn({
    now: () => nowMs,
    fetch: (url, init) => (isOut ? Promise.reject(new TypeError("fetch failed")) : fetch(url, init)),
  });
  await session.accessToken();
  isOut = true;
  nowMs -= 3_600_000;
  await expect(session.accessToken()).rejects.toThrow(SessionUnavailable);
});

test("a call of Connect that is refused for good stays refused", async () => {
  const { session, user } = await signedIn();
  await session.accessToken();
  await openAdmin(service).call(admin.revokeSession, { sessionId: user.sid }, bearer(service.adminToken));
  const transport = createConnectTransport({
    baseUrl: service.publicUrl,
    httpVersion: "1.1",
    interceptors: [session.interceptor],
  });
  const error = await createClient(SessionService, transport)
    .listSessions({})
    .catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(ConnectError);
  expect((error as ConnectError).code).toBe(Code.Unauthenticated);
});

test.each([{}, { kty: "EC", crv: "P-256", x: "AA", y: "AA", d: "AA" }])(
  "a stored key that is none says nothing about the session: %o",
  async (key) => {
    const path = join(directory, "key.json");
    writeFileSync(path, JSON.stringify({ refreshToken: "any", key }));
    const session = createTokenSession({
      service: "http://127.0.0.1:1",
      clientId: "cli",
      store: createFileStore(path),
    });
    await expect(session.accessToken()).rejects.toThrow(SessionUnavailable);
    await expect(session.end()).rejects.toThrow("the stored key is not one");
  },
);

test("a file with something else is refused without its text", async () => {
  const path = join(directory, "other.json");
  writeFileSync(path, "secret");
  await expect(createFileStore(path).load()).rejects.toThrow(`${path} holds no tokens`);
});
