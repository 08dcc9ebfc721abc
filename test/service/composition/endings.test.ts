/**
 * Every way in which a session can end, in the real service. Each end causes one event, one entry of the feed, one signal and one count,
 * all with the same reason.
 */
import { join } from "node:path";
import { decodeJwt } from "jose";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { RevocationReason, SessionEventType } from "../../../gen/auth/admin/v1/session_admin_pb.ts";
import { SessionService } from "../../../gen/auth/v1/session_pb.ts";
import { numberOf } from "../../../src/service/api/messages.ts";
import type { EndReason } from "../../../src/service/session/model.ts";
import { systemClock, wallMs } from "../../../src/service/session/time.ts";
import { SESSION_REVOKED } from "../../../src/service/signals/kinds/ssf.ts";
import type { SignalLog } from "../../../src/service/signals/ports.ts";
import { createEmbeddedStore } from "../../../src/service/store/embedded/store.ts";
import { createRedisStore } from "../../../src/service/store/redis/store.ts";
import { aService, type ServiceOnStore, STORES } from "../../support/every-protocol.ts";
import { sendLogout, startIssuer } from "../../support/logout-token.ts";
import type { Service } from "../../support/service.ts";
import {
  admin,
  bearer,
  cookie,
  logIn,
  message,
  openAdmin,
  openPublic,
  somebody,
  successor,
} from "../../support/sessions.ts";
import { redisOptions } from "../../support/store/backends.ts";
import { MARKER_LIFE, REUSE_INTERVAL } from "../../support/store/sessions.ts";
import { until } from "../../support/until.ts";

const rpc = SessionService.method;
const provider = await startIssuer();
afterAll(() => provider.stop());
const SECOND = { seconds: 1n };
const STREAMS = { SIGNALS: "on", SIGNALS_URL: "https://signals.example" };

/** A function that ends sessions in a certain way. It returns their ids and their subject, and what else it has ended. */
type Way = (service: Service) => Promise<{
  readonly subject: string;
  readonly sids: readonly string[];
  readonly actor?: { readonly subject: string; readonly sid: string; readonly reason: EndReason };
}>;

async function logInTwice(service: Service) {
  const subject = somebody();
  return { subject, one: await logIn(service, { subject }), two: await logIn(service, { subject }) };
}

async function revokeByToken(service: Service, kind: "accessToken" | "refreshToken") {
  const user = await logIn(service, { clientId: "cli" });
  const form = new URLSearchParams({ token: user[kind] });
  const response = await fetch(`${service.publicUrl}/v1/oauth/revoke`, { method: "POST", body: form });
  expect(response.status).toBe(200);
  return { subject: user.subject, sids: [user.sid] };
}

const asAdmin = (service: Service) => bearer(service.adminToken);

type Login = Awaited<ReturnType<typeof logIn>>;

/** The ways to end sessions, by reason. The type requires at least an entry for each reason, so that none can be forgotten. */
const WAYS: { readonly [reason in EndReason]: Readonly<Record<string, Way>> } = {
  logout: {
    async "by bearer token"(service) {
      const { subject, sid, accessToken } = await logIn(service);
      message(await openPublic(service).call(rpc.logout, {}, bearer(accessToken)));
      return { subject, sids: [sid] };
    },
    async "by cookie"(service) {
      const { subject, sid, refreshToken } = await logIn(service);
      message(await openPublic(service).call(rpc.logoutByCookie, {}, cookie(refreshToken)));
      return { subject, sids: [sid] };
    },
    "by an access token at the endpoint of OAuth": (service) => revokeByToken(service, "accessToken"),
    "by a refresh token at the endpoint of OAuth": (service) => revokeByToken(service, "refreshToken"),
    async "by bearer token, with the cookie of another session"(service) {
      const { subject, one, two } = await logInTwice(service);
      const credentials = { ...bearer(one.accessToken), ...cookie(two.refreshToken) };
      message(await openPublic(service).call(rpc.logout, {}, credentials));
      return { subject, sids: [one.sid, two.sid] };
    },
  },
  revoked_by_owner: {
    async "from another session"(service) {
      const { subject, one, two } = await logInTwice(service);
      message(await openPublic(service).call(rpc.revokeSession, { sessionId: two.sid }, bearer(one.accessToken)));
      return { subject, sids: [two.sid] };
    },
  },
  revoked_others: {
    async "all others"(service) {
      const { subject, one, two } = await logInTwice(service);
      message(await openPublic(service).call(rpc.revokeOtherSessions, {}, bearer(one.accessToken)));
      return { subject, sids: [two.sid] };
    },
  },
  revoked_by_admin: {
    async "by an operator"(service) {
      const { subject, sid } = await logIn(service);
      message(await openAdmin(service).call(admin.revokeSession, { sessionId: sid }, asAdmin(service)));
      return { subject, sids: [sid] };
    },
  },
  revoked_subject: {
    async "all of a subject"(service) {
      const { subject, one, two } = await logInTwice(service);
      message(await openAdmin(service).call(admin.revokeSubjectSessions, { subject }, asAdmin(service)));
      return { subject, sids: [one.sid, two.sid] };
    },
    async "all of a subject, at the endpoint of OAuth"(service) {
      const { subject, sid } = await logIn(service);
      const body = JSON.stringify({ sub_id: { format: "opaque", id: subject } });
      const headers = { ...asAdmin(service), "content-type": "application/json" };
      const url = `${service.adminUrl}/v1/oauth/global-token-revocation`;
      expect((await fetch(url, { method: "POST", headers, body })).status).toBe(204);
      return { subject, sids: [sid] };
    },
  },
  session_limit: {
    async "one login too many"(service) {
      const { subject, one } = await logInTwice(service);
      await logIn(service, { subject });
      return { subject, sids: [one.sid] };
    },
  },
  replaced: {
    async "a login in its place"(service) {
      const { subject, sid } = await logIn(service);
      await logIn(service, { subject, replacesSessionId: sid });
      return { subject, sids: [sid] };
    },
  },
  reuse: {
    async "a token that was used before"(service) {
      const { subject, sid, refreshToken } = await logIn(service);
      const refresh = (token: string) => openPublic(service).call(rpc.refresh, {}, cookie(token));
      const second = successor(await refresh(refreshToken)) ?? "";
      message(await refresh(successor(await refresh(second)) ?? ""));
      expect(await refresh(refreshToken)).toMatchObject({ code: "E001_AUTH_FAILURE" });
      return { subject, sids: [sid] };
    },
  },
  expired: {
    async "by its idle timeout"(service) {
      const { subject, sid } = await logIn(service, { idleTimeout: SECOND });
      return { subject, sids: [sid] };
    },
    async "by its absolute lifetime"(service) {
      const { subject, sid } = await logIn(service, { idleTimeout: SECOND, absoluteLifetime: SECOND });
      return { subject, sids: [sid] };
    },
  },
  actor_ended: {
    "the actor logs out": (service) =>
      endActor(service, "logout", ({ accessToken }) =>
        openPublic(service).call(rpc.logout, {}, bearer(accessToken)).then(message),
      ),
    "an operator ends the sessions of the actor": (service) =>
      endActor(service, "revoked_subject", ({ subject }) =>
        openAdmin(service).call(admin.revokeSubjectSessions, { subject }, asAdmin(service)).then(message),
      ),
    "a login takes the place of the actor's session": (service) =>
      endActor(service, "replaced", ({ sid: replacesSessionId }) => logIn(service, { replacesSessionId })),
  },
  upstream_logout: {
    async "a logout token of the identity provider"(service) {
      const { issuer } = provider;
      const { subject, sid } = await logIn(service, { upstream: { issuer, sessionId: somebody(), subject: "alice" } });
      expect((await sendLogout(service, await provider.sign({ sub: "alice" }))).status).toBe(200);
      return { subject, sids: [sid] };
    },
  },
};

/** Ends the session of an actor, with which one ends that the actor uses in place of its subject. */
async function endActor(service: Service, reason: EndReason, end: (own: Login) => Promise<unknown>) {
  const own = await logIn(service);
  const actor = { subject: own.subject, sessionId: own.sid, endWithSession: true };
  const { subject, sid } = await logIn(service, { actor });
  await end(own);
  return { subject, sids: [sid], actor: { subject: own.subject, sid: own.sid, reason } };
}

/** Opens another instance on the store of a service. */
async function openStoreOf({ redisUrl, dataDir }: ServiceOnStore) {
  if (redisUrl !== undefined) return createRedisStore(redisOptions(redisUrl, { commandTimeoutMs: 5_000 }));
  const lives = { reuseIntervalMs: REUSE_INTERVAL, markerLifeMs: MARKER_LIFE };
  return createEmbeddedStore({ path: join(dataDir, "sessions.db"), clock: systemClock, ...lives });
}

/** Returns the ends of sessions in a signal log that a subscription has not read yet. */
async function unread(log: SignalLog, subscription: string) {
  const found: string[][] = [];
  for (let partition = 0; partition < log.partitions; partition++) {
    let cursor = (await log.cursors(partition)).get(subscription);
    for (let more = cursor !== undefined; more && cursor !== undefined; ) {
      const read = await log.read(partition, cursor, 100);
      if (!read.ok) throw new Error(read.reason);
      for (const { signal } of read.signals) found.push([signal.sessionId, signal.reason]);
      cursor = read.signals.at(-1)?.cursor ?? cursor;
      more = read.more;
    }
  }
  return found;
}

describe.each(STORES)("on the %s store", (kind) => {
  const service = aService({ REUSE_INTERVAL: "0", MAX_SESSIONS_PER_SUBJECT: "2", ...STREAMS, ...provider.env }, kind);

  let store: Awaited<ReturnType<typeof openStoreOf>>;
  beforeAll(async () => {
    store = await openStoreOf(service);
    await store.ping();
    const everything = { kind: "ssf_poll", filter: {}, audience: [] } as const;
    await store.signals.subscriptions.create("all", everything, wallMs(Date.now()));
    return () => store.close();
  });

  /** Returns the events of a subject that report the end of a session, after waiting for all of them. */
  async function endsOf(subject: string, count: number) {
    return until(async () => {
      const wanted = { subject, pageSize: 100 };
      const { events } = message(await openAdmin(service).call(admin.listSessionEvents, wanted, asAdmin(service)));
      const ends = events.filter(({ type }) => type === SessionEventType.ENDED);
      if (ends.length < count) throw new Error(`${ends.length} ends of ${count}`);
      return ends.map(({ sessionId, revocationReason }) => [sessionId, revocationReason]);
    });
  }

  /** Returns the entries of the feed, after waiting for all of these sessions. */
  async function feedUntil(sids: readonly string[]) {
    const leaving = new AbortController();
    const entries: string[][] = [];
    const stream = openAdmin(service).stream(admin.watchRevocations, {}, asAdmin(service), leaving.signal);
    for await (const { revocations, caughtUp } of stream) {
      for (const { sessionId, reason } of revocations) entries.push([sessionId, reason]);
      const seen = new Set(entries.map(([sid]) => sid));
      if (caughtUp && sids.every((sid) => seen.has(sid))) break;
    }
    leaving.abort();
    return entries;
  }

  /** Sends a request to the SSF endpoints. */
  async function ssf(path: string, body: object): Promise<Record<string, unknown>> {
    const headers = { ...asAdmin(service), "content-type": "application/json" };
    const url = `${service.adminUrl}/v1/ssf/${path}`;
    const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
    expect(response.ok).toBe(true);
    return (await response.json()) as Record<string, unknown>;
  }

  /** Returns the sessions and reasons of the events that a stream returns, up to the expected number, and checks that no more follow. */
  async function polledUntil(stream: string, count: number) {
    const found: string[][] = [];
    for (let ack: string[] = []; ; ) {
      const { sets } = await ssf(`poll/${stream}`, { ack, maxEvents: 5, returnImmediately: found.length >= count });
      ack = Object.keys(sets as object);
      if (found.length >= count && ack.length === 0) return found;
      for (const token of Object.values(sets as Record<string, string>)) {
        const { sub_id, events } = decodeJwt<{ sub_id: { session: { id: string } }; events: Record<string, unknown> }>(
          token,
        );
        const event = events[SESSION_REVOKED] as { readonly reason_admin: { readonly en: string } };
        found.push([sub_id.session.id, event.reason_admin.en]);
      }
    }
  }

  test("every way to end is one event, one entry of the feed, one signal, one polled event and one count", async () => {
    const { stream_id } = await ssf("streams", {});
    const expected = new Map<string, EndReason>();
    const subjects: [subject: string, count: number][] = [];
    for (const [reason, ways] of Object.entries(WAYS) as [EndReason, (typeof WAYS)[EndReason]][]) {
      for (const way of Object.values(ways)) {
        const { subject, sids, actor } = await way(service);
        subjects.push([subject, sids.length]);
        if (actor !== undefined) {
          subjects.push([actor.subject, 1]);
          expected.set(actor.sid, actor.reason);
        }
        for (const sid of sids) expected.set(sid, reason);
      }
    }
    const events = (await Promise.all(subjects.map(([subject, count]) => endsOf(subject, count)))).flat();
    const wantedEvents = [...expected].map(([sid, reason]) => [sid, numberOf(RevocationReason, reason)]);
    expect(events.toSorted()).toEqual(wantedEvents.toSorted());
    expect((await feedUntil([...expected.keys()])).toSorted()).toEqual([...expected].toSorted());
    expect((await unread(store.signals.log, "all")).toSorted()).toEqual([...expected].toSorted());
    expect((await polledUntil(String(stream_id), expected.size)).toSorted()).toEqual([...expected].toSorted());
    const exposed = await (await fetch(`${service.adminUrl}/metrics`, { headers: asAdmin(service) })).text();
    for (const [reason, sids] of Map.groupBy(expected.keys(), (sid) => expected.get(sid))) {
      expect(exposed).toContain(`session_ended_total{reason="${reason}"} ${sids.length}\n`);
    }
  });
});
