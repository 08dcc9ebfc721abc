/** The public API with a store whose calls are recorded, and with one that fails. */

import { join } from "node:path";
import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { SessionService } from "../../../gen/auth/v1/session_pb.ts";
import { type Listener, openListener } from "../../../src/platform/listener/listener.ts";
import { NO_LIMIT } from "../../../src/service/api/limits/rate-limit.ts";
import { createRefreshCookie } from "../../../src/service/api/public/cookie.ts";
import { createDeviceBinding, createDpop } from "../../../src/service/composition/device-parts.ts";
import { publicHandler } from "../../../src/service/composition/public-api.ts";
import { readConfig } from "../../../src/service/config/config.ts";
import { createMetrics } from "../../../src/service/observability/metrics.ts";
import { create } from "../../../src/service/session/admin/create.ts";
import { UNKNOWN_REQUESTER } from "../../../src/service/session/audit.ts";
import type { SessionStore } from "../../../src/service/session/ports.ts";
import { systemClock } from "../../../src/service/session/time.ts";
import { createEmbeddedStore } from "../../../src/service/store/embedded/store.ts";
import { createAccessTokens } from "../../../src/service/tokens/access-token.ts";
import { loadOrCreateKeyRing } from "../../../src/service/tokens/key-ring.ts";
import { createRandom, systemEntropy } from "../../../src/service/tokens/random.ts";
import { createRefreshTokens } from "../../../src/service/tokens/refresh-token.ts";
import { badRefreshTokens, forgedAccessTokens } from "../../support/bad-tokens.ts";
import { PUBLIC_PROTOCOLS } from "../../support/clients.ts";
import { throughEvery } from "../../support/every-protocol.ts";
import { scratch } from "../../support/service.ts";
import { bearer, cookie, message } from "../../support/sessions.ts";

const { refresh, logout, listSessions, revokeSession, revokeOtherSessions } = SessionService.method;

/** The names of the store's methods in the order in which they were called. While `broken` holds an error, every method throws it. */
const calls: string[] = [];
let broken: Error | undefined;
const logged: string[] = [];
let listener: Listener;
let store: SessionStore;
let user: { readonly refreshToken: string; readonly accessToken: string };

beforeAll(async () => {
  const config = readConfig({});
  store = createEmbeddedStore({
    path: join(scratch(), "s.db"),
    clock: systemClock,
    reuseIntervalMs: 10_000,
    markerLifeMs: 60_000,
  });
  const watched = new Proxy(store, {
    get:
      (target, verb) =>
      async (...given: unknown[]) => {
        calls.push(String(verb));
        if (broken) throw broken;
        return Reflect.get(target, verb).apply(target, given);
      },
  });
  const time = { now: (...of: Parameters<SessionStore["now"]>) => store.now(...of), shiftMs: () => store.shiftMs() };
  const ring = await loadOrCreateKeyRing(join(scratch(), "keys.json"), {
    alg: "ES256",
    now: Date.now(),
    hasSessions: () => false,
  });
  const entropy = systemEntropy();
  listener = await openListener("public", "127.0.0.1", 0);
  const deps = {
    refreshTokens: createRefreshTokens(ring),
    accessTokens: createAccessTokens({ keys: ring, issuer: listener.url, ttlMs: 300_000, entropy, time }),
    random: createRandom(entropy),
    audit: () => {},
    audiences: new Set(["api"]),
    issuer: listener.url,
    adminUrl: undefined,
    keyAlgorithms: () => [],
    cookie: createRefreshCookie(config.cookie, Date.now),
    accept: () => true,
    device: createDeviceBinding(config, ring, entropy, time.now),
    dpop: createDpop(config, ring, entropy, listener.url),
    lastSeen: undefined,
    refreshLimit: NO_LIMIT,
    failureLimit: NO_LIMIT,
    createLimit: NO_LIMIT,
    jwks: () => "{}",
    metrics: createMetrics(),
    draining: new AbortController().signal,
    stopping: new AbortController().signal,
    ready: () => store.ping(),
    onUnavailable: () => {},
    log: pino({ level: "trace" }, { write: (line: string) => void logged.push(line) }),
  };
  listener.serve(publicHandler(config, deps, { ...deps, store: watched }));
  const client = { userAgent: "", ipAddress: "", displayName: "" };
  const wanted = { subject: "alice", clientId: "web", audience: "api", claims: "{}", client };
  const lifetimes = { idleTimeoutMs: 60_000, absoluteLifetimeMs: 60_000 };
  const created = await create(
    { ...deps, store, maxSessionsPerSubject: 10 },
    { ...wanted, ...lifetimes },
    UNKNOWN_REQUESTER,
  );
  if (!created.ok) throw new Error("limited");
  user = { refreshToken: created.refreshToken, accessToken: created.accessToken.token };
});
afterAll(async () => {
  await listener.close(0);
  await store.close();
});

describe("over a store that is watched", () => {
  throughEvery(
    PUBLIC_PROTOCOLS,
    () => listener.url,
    (caller) => {
      test("what is refused without the store is refused without the store", async () => {
        calls.length = 0;
        for (const [, text] of badRefreshTokens(user.refreshToken)) await caller.call(refresh, {}, cookie(text));
        await caller.call(refresh);
        await caller.call(refresh, {}, { cookie: "refresh_token=y; refresh_token=x" });
        for (const [, text] of forgedAccessTokens(user.accessToken)) {
          await caller.call(logout, {}, bearer(text));
          await caller.call(listSessions, {}, bearer(text));
          await caller.call(revokeSession, { sessionId: "A".repeat(23) }, bearer(text));
          await caller.call(revokeOtherSessions, {}, bearer(text));
        }
        const strange = { "sec-fetch-site": "cross-site", ...cookie(user.refreshToken), ...bearer(user.accessToken) };
        await caller.call(refresh, {}, strange);
        await caller.call(logout, {}, strange);
        await caller.call(listSessions, { pageToken: "!" }, bearer(user.accessToken));
        expect(calls).toEqual([]);
      });

      test("a refresh is one step of the store; an operation with an access token first reads whether the token is current", async () => {
        calls.length = 0;
        message(await caller.call(refresh, {}, cookie(user.refreshToken)));
        expect(calls.splice(0)).toEqual(["rotate"]);
        message(await caller.call(revokeOtherSessions, {}, bearer(user.accessToken)));
        expect(calls.splice(0)).toEqual(["find", "endAll"]);
        await caller.call(revokeSession, { sessionId: "A".repeat(23) }, bearer(user.accessToken));
        expect(calls.splice(0)).toEqual(["find", "endOwned"]);
        // Even with an invalid session id, the response depends on whether the caller's own session is live.
        await caller.call(revokeSession, { sessionId: "x" }, bearer(user.accessToken));
        expect(calls.splice(0)).toEqual(["find"]);
      });
    },
  );
});

describe("over a store that breaks in a way that nobody foresaw", () => {
  beforeAll(() => {
    broken = new Error("the password is hunter2");
  });

  throughEvery(
    PUBLIC_PROTOCOLS,
    () => listener.url,
    (caller) => {
      test("the caller gets E500_INTERNAL and no more, and the log has all of it", async () => {
        logged.length = 0;
        const responses = [
          await caller.call(refresh, {}, cookie(user.refreshToken)),
          await caller.call(logout, {}, bearer(user.accessToken)),
          await caller.call(listSessions, {}, bearer(user.accessToken)),
        ];
        for (const response of responses) {
          expect(response).toMatchObject({ ok: false, code: "E500_INTERNAL", text: "internal error" });
          expect(JSON.stringify([...response.headers])).not.toMatch(/hunter2|\.ts:/);
          expect(response.headers.getSetCookie()).toEqual([]);
        }
        const bugs = logged.map((line) => JSON.parse(line)).filter(({ msg }) => msg === "bug");
        expect(bugs.map(({ method }) => method)).toEqual(["Refresh", "Logout", "ListSessions"]);
        expect(bugs[0].err.message).toBe("the password is hunter2");
      });
    },
  );
});
