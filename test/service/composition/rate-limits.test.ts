/** Rate limits of the real service, through every protocol (docs/reference/limits.md). */
import { once } from "node:events";
import { connect } from "node:net";
import { timestampNow } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "vitest";
import { AccessTokenPolicy } from "../../../gen/auth/admin/v1/session_admin_pb.ts";
import { SessionService } from "../../../gen/auth/v1/session_pb.ts";
import { badRefreshTokens, forgedAccessTokens } from "../../support/bad-tokens.ts";
import { type Caller, PUBLIC_PROTOCOLS, RPC_PROTOCOLS } from "../../support/clients.ts";
import { aService, STORES, throughEvery } from "../../support/every-protocol.ts";
import type { Service } from "../../support/service.ts";
import { admin, bearer, cookie, logIn, message, openAdmin, somebody, successor } from "../../support/sessions.ts";

const { refresh, logout } = SessionService.method;
/** The limit in these tests. It is low, so that few requests reach it. */
const LIMIT = 3;
const LIMITS = {
  RATE_LIMIT_REFRESH: `${LIMIT}/10m`,
  RATE_LIMIT_FAILURES: `${LIMIT}/10m`,
  RATE_LIMIT_CREATE: `${LIMIT}/10m`,
  RATE_LIMIT_UPDATE: `${LIMIT}/10m`,
};

let addresses = 0;
/** Returns an address that no other test uses. */
const anAddress = () => `198.51.${addresses >> 8}.${addresses++ & 255}`;
const from = (address: string) => ({ "x-forwarded-for": address });

const forge = (token: string) => token.slice(0, -1) + (token.endsWith("A") ? "B" : "A");

function expectLimited(response: Awaited<ReturnType<Caller["call"]>>) {
  expect(response).toMatchObject({ ok: false, code: "E429_RATE_LIMITED", text: "too many requests" });
  if (!response.ok && response.rpc !== undefined) expect(response.rpc).toBe("resource_exhausted");
  const seconds = Number(response.headers.get("retry-after"));
  expect(seconds).toBeGreaterThan(300);
  expect(seconds).toBeLessThanOrEqual(600);
  expect(response.headers.getSetCookie()).toEqual([]);
}

async function failOften(caller: Caller, token: string, address: string, times: number) {
  for (let time = 0; time < times; time++) {
    const response = await caller.call(refresh, {}, { ...cookie(forge(token)), ...from(address) });
    expect(response).toMatchObject({ ok: false, code: "E001_AUTH_FAILURE" });
  }
}

const metric = async (service: Service, line: string) =>
  Number(new RegExp(`^${line} (\\d+)$`, "m").exec(await (await fetch(`${service.adminUrl}/metrics`)).text())?.[1] ?? 0);

describe.each(STORES)("on the %s store", (store) => {
  const service = aService({ ...LIMITS, TRUST_PROXY: "1", REUSE_INTERVAL: "0" }, store);
  throughEvery(
    PUBLIC_PROTOCOLS,
    () => service.publicUrl,
    (caller) => {
      test("a session is refreshed so often and no more, and nothing happens to it over the limit", async () => {
        const user = await logIn(service);
        const other = await logIn(service);
        let token = user.refreshToken;
        for (let time = 0; time < LIMIT; time++) {
          const response = await caller.call(refresh, {}, cookie(token));
          message(response);
          token = successor(response) ?? token;
        }
        const look = async () =>
          message(await openAdmin(service).call(admin.getSession, { sessionId: user.sid }, bearer(service.adminToken)));
        const before = await look();
        const limitedBefore = await metric(service, 'session_rate_limited_total\\{limit="refresh"\\}');
        for (let time = 0; time < 3; time++) expectLimited(await caller.call(refresh, {}, cookie(token)));
        expect(await look()).toEqual(before);
        expect(await metric(service, 'session_rate_limited_total\\{limit="refresh"\\}')).toBe(limitedBefore + 3);
        message(await caller.call(refresh, {}, cookie(other.refreshToken)));
        message(await caller.call(logout, {}, bearer(user.accessToken)));
      });

      test("over the limit of failures an address gets 429 for what is bad, and all that it is due for what is good", async () => {
        const user = await logIn(service);
        const [address, neighbour] = [anAddress(), anAddress()];
        await failOften(caller, user.refreshToken, address, LIMIT);
        expectLimited(await caller.call(refresh, {}, { ...cookie(forge(user.refreshToken)), ...from(address) }));
        for (const [, text] of badRefreshTokens(user.refreshToken).slice(1)) {
          expectLimited(await caller.call(refresh, {}, { ...cookie(text), ...from(address) }));
        }
        for (const [, text] of forgedAccessTokens(user.accessToken)) {
          expectLimited(await caller.call(logout, {}, { ...bearer(text || "x"), ...from(address) }));
        }
        await failOften(caller, user.refreshToken, neighbour, 1);
        message(await caller.call(refresh, {}, { ...cookie(user.refreshToken), ...from(address) }));
        message(await caller.call(logout, {}, { ...bearer(user.accessToken), ...from(address) }));
      });

      test("what has ended is never counted, however often it is presented", async () => {
        const user = await logIn(service);
        message(await caller.call(logout, {}, bearer(user.accessToken)));
        const address = from(anAddress());
        // The limit of the session still counts refreshes after the session has ended. The refreshes in this loop do not exceed that limit.
        for (let time = 0; time < LIMIT; time++) {
          const ended = await caller.call(refresh, {}, { ...cookie(user.refreshToken), ...address });
          expect(ended).toMatchObject({ ok: false, code: "E001_AUTH_FAILURE" });
          const loggedOut = await caller.call(logout, {}, { ...bearer(user.accessToken), ...address });
          expect(loggedOut).toMatchObject({ ok: false, code: "E001_AUTH_FAILURE" });
        }
        await failOften(caller, user.refreshToken, address["x-forwarded-for"], LIMIT);
      });

      test("a missing credential is counted with the bad ones", async () => {
        const user = await logIn(service);
        const address = from(anAddress());
        for (let time = 0; time < LIMIT; time++) {
          const method = [refresh, logout, SessionService.method.listSessions][time % 3] as typeof refresh;
          expect(await caller.call(method, {}, address)).toMatchObject({ ok: false, code: "E001_AUTH_FAILURE" });
        }
        expectLimited(await caller.call(refresh, {}, address));
        message(await caller.call(refresh, {}, { ...cookie(user.refreshToken), ...address }));
      });

      test("an IPv6 address is counted with its /64", async () => {
        const user = await logIn(service);
        const prefix = `2001:db8:${addresses++}:1`;
        for (let host = 1; host <= LIMIT; host++) {
          await failOften(caller, user.refreshToken, `${prefix}::${host}`, 1);
        }
        const bad = cookie(forge(user.refreshToken));
        expectLimited(await caller.call(refresh, {}, { ...bad, ...from(`${prefix}:ffff::1`) }));
        await failOften(caller, user.refreshToken, `2001:db8:${addresses++}:2::1`, 1);
      });
    },
  );

  throughEvery(
    RPC_PROTOCOLS,
    () => service.adminUrl,
    (caller) => {
      test("so many sessions are created for one subject, and any number for others", async () => {
        const subject = somebody();
        const token = bearer(service.adminToken);
        for (let time = 0; time < LIMIT; time++) message(await caller.call(admin.createSession, { subject }, token));
        expectLimited(await caller.call(admin.createSession, { subject }, token));
        message(await caller.call(admin.createSession, { subject: somebody() }, token));
        const { sessions } = message(await caller.call(admin.listSessions, { subject }, token));
        expect(sessions).toHaveLength(LIMIT);
      });

      test("a session is updated so often and no more, in all ways together", async () => {
        const user = await logIn(service);
        const token = bearer(service.adminToken);
        const wanted = { sessionId: user.sid, claims: { role: "reader" }, accessTokens: AccessTokenPolicy.REFRESH };
        const elevation = { sessionId: user.sid, authTime: timestampNow(), amr: ["otp"] };
        message(await caller.call(admin.updateSession, wanted, token));
        const all = { subject: user.subject, claims: {} };
        message(await caller.call(admin.updateSubjectSessions, all, token));
        message(await caller.call(admin.elevateSession, { ...elevation, accessTokens: wanted.accessTokens }, token));
        expectLimited(await caller.call(admin.updateSession, wanted, token));
        expectLimited(await caller.call(admin.updateSubjectSessions, all, token));
        expectLimited(
          await caller.call(admin.elevateSession, { ...elevation, accessTokens: wanted.accessTokens }, token),
        );
        message(await caller.call(admin.elevateSession, elevation, token)); // It adds nothing to the log.
        const { session } = message(await caller.call(admin.getSession, { sessionId: user.sid }, token));
        expect(session).toMatchObject({ claims: {}, etag: "3" });
        message(await caller.call(admin.updateSession, { ...wanted, sessionId: (await logIn(service)).sid }, token));
      });

      test("an admin token is not guessed faster than the limit, and a good one is always served", async () => {
        const address = from(anAddress());
        const call = (token: string) =>
          caller.call(admin.listSessions, { subject: somebody() }, { ...bearer(token), ...address });
        for (let time = 0; time < LIMIT; time++) {
          expect(await call("guess")).toMatchObject({ ok: false, code: "E001_AUTH_FAILURE" });
        }
        expectLimited(await call("guess"));
        message(await call(service.adminToken));
      });
    },
  );

  test("each limit logs what it limits, without a token", async () => {
    const lines = service
      .stderr()
      .split("\n")
      .filter((line) => line.includes('"rate_limited"'));
    const limits = new Set(lines.map((line) => JSON.parse(line).limit));
    expect(limits.has("refresh")).toBe(true);
    for (const line of lines) expect(line).not.toMatch(/[A-Za-z0-9_-]{86}/);
  });
});

describe("with every limit off", () => {
  const service = aService({ RATE_LIMIT_REFRESH: "off", RATE_LIMIT_FAILURES: "off", RATE_LIMIT_CREATE: "off" });
  test("nothing is refused", async () => {
    const user = await logIn(service);
    const caller = PUBLIC_PROTOCOLS.at(-1)?.open(service.publicUrl) as Caller;
    for (let time = 0; time < 400; time++) {
      message(await caller.call(refresh, {}, cookie(user.refreshToken)));
      await failOften(caller, user.refreshToken, "192.0.2.1", 1);
    }
  });
});

describe("by default", () => {
  // The service refuses requests that have waited for a quarter of the reuse interval. The interval is long, so that the delays of a very
  // busy machine cause no refusals.
  const service = aService({ REUSE_INTERVAL: "60s" });
  test("a hundred tabs that all wake up, three times in a row, are served", async () => {
    const user = await logIn(service);
    const caller = PUBLIC_PROTOCOLS.at(-1)?.open(service.publicUrl) as Caller;
    for (let time = 0; time < 3; time++) {
      const tabs = Array.from({ length: 100 }, () => caller.call(refresh, {}, cookie(user.refreshToken)));
      for (const response of await Promise.all(tabs)) message(response);
    }
  });

  test("one refresh token mints no flood of access tokens", async () => {
    const user = await logIn(service);
    const caller = PUBLIC_PROTOCOLS.at(-1)?.open(service.publicUrl) as Caller;
    let minted = 0;
    const start = performance.now();
    for (let time = 0; time < 20; time++) {
      const responses = await Promise.all(
        Array.from({ length: 50 }, () => caller.call(refresh, {}, cookie(user.refreshToken))),
      );
      minted += responses.filter((response) => response.ok).length;
    }
    expect(minted).toBeGreaterThanOrEqual(300);
    // On a busy machine a window of the rate limit may end during the test. Further requests are then allowed.
    const windows = 1 + Math.floor((performance.now() - start) / 30_000);
    expect(minted).toBeLessThanOrEqual(332 * windows);
  });
});

describe("a session over its limit", () => {
  const service = aService({ ...LIMITS, REUSE_INTERVAL: "0" });

  /** Uses up the limit of a new session. */
  async function limitedSession() {
    let { refreshToken } = await logIn(service);
    for (let time = 0; time < LIMIT; time++) {
      const response = await fetch(`${service.publicUrl}/v1/auth/refresh`, {
        method: "POST",
        headers: cookie(refreshToken),
      });
      expect(response.status).toBe(200);
      refreshToken = /=([^;]*)/.exec(response.headers.getSetCookie()[0] ?? "")?.[1] ?? "";
    }
    return cookie(refreshToken);
  }

  test("is refused before the message of its request is read", async () => {
    const { cookie: value } = await limitedSession();
    const { hostname, port } = new URL(service.publicUrl);
    const socket = connect(Number(port), hostname);
    socket.write(`POST /v1/auth/refresh HTTP/1.1\r\nhost: x\r\ncookie: ${value}\r\ncontent-length: 2\r\n\r\n`);
    const [head] = (await once(socket, "data")) as [Buffer];
    socket.destroy();
    expect(head.toString()).toMatch(/^HTTP\/1\.1 429 [\s\S]*retry-after: \d+/i);
  });

  test("has another limit for what may prove a key", async () => {
    const headers = { ...(await limitedSession()), dpop: "no proof" };
    const response = await fetch(`${service.publicUrl}/v1/auth/refresh`, { method: "POST", headers });
    expect(response.status).toBe(400);
  });
});
