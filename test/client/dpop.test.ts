/** The client library with a key (DPoP) against the real service: clocks, nonces, `fetch`, Connect, other processes, an attacker. */
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { Transport } from "../../gen/auth/admin/v1/session_admin_pb.ts";
import { SessionService } from "../../gen/auth/v1/session_pb.ts";
import {
  createFileStore,
  createTokenSession,
  generateProofKey,
  proofKeyThumbprint,
  SessionUnavailable,
} from "../../src/client/index.ts";
import { importProofKey } from "../../src/client/proof-key.ts";
import { PATIENCE_MS } from "../support/patience.ts";
import { type Service, startService } from "../support/service.ts";
import { admin, bearer, logIn, openAdmin } from "../support/sessions.ts";

const directory = mkdtempSync(join(tmpdir(), "client-dpop-"));
afterAll(() => rmSync(directory, { recursive: true }));

const portOf = (server: Server) => (server.address() as AddressInfo).port;
const claims = (token: string) => JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString());

describe.each(["off", "on"] as const)("with DPOP_NONCES=%s", (nonces) => {
  let service: Service;
  beforeAll(async () => {
    service = await startService({ DPOP_NONCES: nonces, REUSE_INTERVAL: "0" });
  });
  afterAll(() => service.stop());

  let count = 0;
  const optionsFor = (path: string, change: Partial<Parameters<typeof createTokenSession>[0]> = {}) => ({
    service: service.publicUrl,
    clientId: "cli",
    requestTimeoutMs: PATIENCE_MS,
    store: createFileStore(path),
    dpop: true,
    ...change,
  });
  async function signedIn(change: Partial<Parameters<typeof createTokenSession>[0]> = {}) {
    const user = await logIn(service, { clientId: "cli", transport: Transport.TOKEN });
    const path = join(directory, `${nonces}-${++count}.json`);
    const session = createTokenSession(optionsFor(path, change));
    await session.start(user);
    return { user, path, session, stored: () => JSON.parse(readFileSync(path, "utf8")) };
  }

  test.each([
    ["right", 0],
    ["an hour late", -3_600_000],
    ["an hour early", 3_600_000],
  ])("a session is bound by its first refresh, with a clock that is %s", async (_, offMs) => {
    const { session, path, stored } = await signedIn({ now: () => Date.now() + offMs });
    const key = stored().key;
    const token = await session.accessToken();
    expect(claims(token).cnf).toEqual({ jkt: await proofKeyThumbprint(key) });
    expect([stored().key, statSync(path).mode & 0o777]).toEqual([key, 0o600]);
    const response = await session.fetch(`${service.publicUrl}/v1/auth/sessions`);
    expect(response.status).toBe(200);
    await session.end();
    expect((await createTokenSession(optionsFor(path)).accessToken().catch(String)) as string).toContain(
      "SessionEnded",
    );
  });

  test("a proof goes to its own URL alone: a redirect is the response", async () => {
    const received: string[] = [];
    const other = createServer((request, response) => {
      received.push(request.url ?? "");
      response.end();
    });
    const redirecting = createServer((_, response) => {
      response.writeHead(307, { location: `http://127.0.0.1:${portOf(other)}/elsewhere` }).end();
    });
    for (const server of [other, redirecting]) await once(server.listen(0, "127.0.0.1"), "listening");
    onTestFinished(() => {
      for (const server of [other, redirecting]) server.close();
    });
    const origin = `http://127.0.0.1:${portOf(redirecting)}`;
    const { session } = await signedIn({ origins: [origin] });
    const response = await session.fetch(`${origin}/orders`);
    expect([response.status, response.headers.get("location"), received]).toEqual([
      307,
      `http://127.0.0.1:${portOf(other)}/elsewhere`,
      [],
    ]);
  });

  test("calls of Connect carry a proof each", async () => {
    const { session, user } = await signedIn();
    const transport = createConnectTransport({
      baseUrl: service.publicUrl,
      httpVersion: "1.1",
      interceptors: [session.interceptor],
    });
    for (let i = 0; i < 2; i++) {
      const { data } = await createClient(SessionService, transport).listSessions({});
      expect(data?.sessions.map(({ sessionId }) => sessionId)).toEqual([user.sid]);
    }
  });

  test("a login may bind the session before its first request", async () => {
    const key = await generateProofKey();
    const dpopJkt = await proofKeyThumbprint(key);
    const user = await logIn(service, { clientId: "cli", transport: Transport.TOKEN, dpopJkt });
    const session = createTokenSession(optionsFor(join(directory, `${nonces}-jkt.json`)));
    await session.start({ ...user, key });
    expect(claims(await session.accessToken()).cnf).toEqual({ jkt: dpopJkt });
  });

  test("a token that is many generations old is served, and nobody is signed out", async () => {
    const { path, session, user } = await signedIn();
    const first = JSON.parse(readFileSync(path, "utf8"));
    for (let i = 0; i < 3; i++) {
      const { refreshToken, key } = JSON.parse(readFileSync(path, "utf8"));
      await session.start({ refreshToken, key });
      await session.accessToken();
    }
    await session.start(first);
    expect(claims(await session.accessToken()).sid).toBe(user.sid);
  });

  test("a thief with the file and without the key of the keychain is served nothing", async () => {
    const dpop = await importProofKey(await generateProofKey());
    const { path, session, user, stored } = await signedIn({ dpop });
    await session.accessToken();
    expect(stored().key).toBeUndefined();
    const thief = createTokenSession(optionsFor(path, { dpop: false, now: () => Date.now() + 86_400_000 }));
    await expect(thief.accessToken()).rejects.toThrow(SessionUnavailable);
    await expect(thief.end()).rejects.toThrow(SessionUnavailable);
    const { access } = stored();
    const list = (authorization: string) =>
      fetch(`${service.publicUrl}/v1/auth/sessions`, { headers: { authorization } });
    expect((await list(`Bearer ${access.token}`)).status).toBe(401);
    expect((await list(`DPoP ${access.token}`)).status).toBe(401);
    const found = await openAdmin(service).call(admin.getSession, { sessionId: user.sid }, bearer(service.adminToken));
    expect(found.ok).toBe(true);
    expect((await session.fetch(`${service.publicUrl}/v1/auth/sessions`)).status).toBe(200);
  });
});
