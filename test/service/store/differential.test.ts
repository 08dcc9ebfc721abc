/**
 * Random histories: the model (the pure functions of the domain, with maps in memory), the embedded store and real Redis give the same
 * result for every step. The clock moves by steps close to the reuse interval and the lifetimes. The presented tokens are those that were
 * returned, including several successors of one token (siblings), and corrupted ones.
 */
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { DevicePresentation } from "../../../src/service/session/devices/binding.ts";
import { type DeviceKey, type KeyProof, thumbprintOf } from "../../../src/service/session/devices/key.ts";
import type { EndReason, LogEntry, ProviderNote, SessionId } from "../../../src/service/session/model.ts";
import type { ExpiredSession, RotateOutcome, SessionStore } from "../../../src/service/session/ports.ts";
import type { TokenFields } from "../../../src/service/session/rotation/rotation.ts";
import { later, storeMs, wallMs } from "../../../src/service/session/time.ts";
import { SIGNAL_EVENTS, type Signal } from "../../../src/service/signals/model.ts";
import type { Cursor, StoreWithSignals } from "../../../src/service/signals/ports.ts";
import { type Backend, embeddedBackend, redisBackend } from "../../support/store/backends.ts";
import { someKey, someProof } from "../../support/store/device.ts";
import { takeDue } from "../../support/store/event-records.ts";
import {
  MARKER_LIFE,
  newSession,
  nonce,
  REUSE_INTERVAL,
  SECOND,
  sidOf,
  subject,
} from "../../support/store/sessions.ts";
import { ModelStore, ORIGIN } from "./model.ts";

const backends: Backend[] = [];
const stores: StoreWithSignals[] = [];

beforeAll(async () => {
  backends.push(await embeddedBackend(), await redisBackend());
  for (const backend of backends) stores.push(await backend.open());
  const filter = { events: Object.values(SIGNAL_EVENTS) };
  const definition = { kind: "webhook", endpoint: "https://receiver.example/", filter, audience: [] } as const;
  for (const store of stores) await store.signals.subscriptions.create("history", definition, wallMs(0));
});
afterAll(() => Promise.all(backends.map((backend) => backend.stop())));

/**
 * Selects the session or token that a step uses, among those that exist so far. The number counts back from the newest one. The newest ones
 * are preferred, because most of them are live.
 */
const pick = fc.oneof({ weight: 9, arbitrary: fc.nat(2) }, { weight: 1, arbitrary: fc.nat(12) });
const reason = fc.constantFrom<EndReason>("logout", "revoked_by_admin");
const R = REUSE_INTERVAL;
const IDLE = 240 * SECOND;
/** Shorter than the reuse interval, as long, longer, and too long to matter. Weighted so that most sessions live long. */
const IDLE_TIMEOUTS = [R / 4, R / 2, R - 1, R, R + 1, 1.5 * R, 2 * R, IDLE, IDLE, IDLE, IDLE, IDLE];
/** How long an id leads to one session, in ms: longer than a session and its marker. */
const RESERVED = 4 * IDLE + MARKER_LIFE;
/** The life of a device cookie, in ms. */
const LIFE = 3 * R;

const step = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      does: fc.constant("create" as const),
      user: pick,
      cap: fc.integer({ min: 1, max: 4 }),
      idle: fc.constantFrom(...IDLE_TIMEOUTS),
      replaces: fc.option(pick),
      isOther: fc.boolean(),
      kind: fc.constantFrom(undefined, "browser" as const, "tv" as const),
      limit: fc.option(
        fc.record({
          scope: fc.constantFrom("subject" as const, "client_id" as const, "client_kind" as const),
          maxSessions: fc.integer({ min: 1, max: 3 }),
          whenExceeded: fc.constantFrom("end_least_recently_used" as const, "end_oldest" as const, "refuse" as const),
        }),
        { freq: 2 },
      ),
      required: fc.boolean(),
      transport: fc.constantFrom(undefined, undefined, "cookie" as const, "token" as const),
      proof: fc.option(fc.nat(3)),
      agent: fc.constantFrom("", "Firefox", "Chrome"),
      /** Which id that leads to one session is used; null for an id that no other session has. */
      once: fc.option(fc.nat(1), { freq: 2 }),
      login: fc.option(fc.record({ sessionId: fc.option(fc.nat(1)), subject: fc.option(fc.nat(1)) }), { freq: 2 }),
      actor: fc.option(fc.record({ own: pick, isAttached: fc.boolean() }), { freq: 2 }),
    }),
  },
  {
    weight: 30,
    arbitrary: fc.record({
      does: fc.constant("rotate" as const),
      session: pick,
      recent: fc.nat(4),
      seen: fc.constantFrom(undefined, "Firefox", "Chrome"),
      device: fc.option(
        fc.record({
          key: fc.nat(3),
          age: fc.constantFrom(0, R, LIFE, LIFE + 1),
          skipped: fc.boolean(),
          token: fc.boolean(),
          proof: fc.option(fc.nat(3)),
          client: fc.constantFrom(undefined, "own" as const, "own" as const, "another" as const),
        }),
      ),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ does: fc.constant("register" as const), session: pick, recent: fc.nat(4), key: fc.nat(1) }),
  },
  { weight: 1, arbitrary: fc.record({ does: fc.constant("unbind" as const), session: pick }) },
  {
    weight: 1,
    arbitrary: fc.record({ does: fc.constant("mangle" as const), session: pick, by: fc.integer({ min: -2, max: 3 }) }),
  },
  {
    weight: 15,
    arbitrary: fc.record({
      does: fc.constant("wait" as const),
      ms: fc.oneof(
        { weight: 9, arbitrary: fc.constantFrom(1, R / 2, R - 1, R, R + 1, 1.5 * R, 2 * R) },
        { weight: 1, arbitrary: fc.constantFrom(60 * SECOND, IDLE - 1, IDLE, MARKER_LIFE) },
      ),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      does: fc.constant("end" as const),
      session: pick,
      reason,
      holder: fc.option(fc.record({ recent: fc.nat(4), proof: fc.option(fc.nat(3)) })),
    }),
  },
  { weight: 1, arbitrary: fc.record({ does: fc.constant("endOwned" as const), session: pick, target: pick, reason }) },
  {
    weight: 1,
    arbitrary: fc.record({
      does: fc.constant("endAll" as const),
      user: pick,
      reason,
      except: fc.boolean(),
      isCaller: fc.boolean(),
      session: pick,
    }),
  },
  { weight: 1, arbitrary: fc.record({ does: fc.constant("forget" as const), user: pick, ends: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ does: fc.constant("endAttached" as const) }) },
  { weight: 2, arbitrary: fc.record({ does: fc.constant("expire" as const) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      does: fc.constant("revokeAll" as const),
      /** The session up to whose creation, or up to just before it, all end; null for all that exist. */
      session: fc.option(pick, { freq: 3 }),
      isSpared: fc.boolean(),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      does: fc.constant("elevate" as const),
      session: pick,
      time: fc.nat(3),
      otp: fc.boolean(),
      outdatesTokens: fc.boolean(),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      does: fc.constant("update" as const),
      session: pick,
      claims: fc.constantFrom(undefined, "{}", '{"role":"a"}', '{"role":"b"}'),
      audience: fc.constantFrom(undefined, undefined, "https://a.example", ["x", "y"] as const),
      ifVersion: fc.constantFrom(undefined, undefined, 0, 1, 2),
      outdatesTokens: fc.boolean(),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ does: fc.constant("look" as const), session: pick, user: pick, name: fc.nat(1) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      does: fc.constant("note" as const),
      note: fc.nat(1),
      lifeMs: fc.constantFrom(1, R, IDLE),
    }),
  },
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

type Device = Extract<Step, { does: "rotate" }>["device"];

/**
 * Returns the device data of a request: a device cookie for one of two keys, no cookie, or the data of a client that sends its refresh
 * token without a cookie.
 */
function presentation(
  device: Device,
  keys: readonly DeviceKey[],
  now: number,
  clientId: string,
): DevicePresentation | undefined {
  if (device === null) return undefined;
  const key = keys[device.key];
  const cookie = key && { thumbprint: key.thumbprint, issuedAtMs: storeMs(now - device.age) };
  const proof = proofOf(device.proof, keys);
  if (device.token) {
    const client = device.client && { clientId: device.client === "own" ? clientId : "another" };
    return { lifeMs: LIFE, cookie: undefined, skipped: false, transport: "token", ...proof, ...client };
  }
  return { lifeMs: LIFE, cookie, skipped: device.skipped, ...proof };
}

/** Returns a proof: of one of the device keys, or of a key that belongs to a client. */
function proofOf(proof: number | null, keys: readonly DeviceKey[]): { readonly proof?: KeyProof } {
  if (proof === null) return {};
  return { proof: keys[proof] ? { thumbprint: thumbprintOf({ key: keys[proof] }) } : someProof(proof) };
}

/** Appends the signals of a logout of everyone, so that those of later endings follow them. */
async function appendSignals({ signals: { log } }: StoreWithSignals, user: string): Promise<void> {
  const partition = log.partitionOf({ sid: sidOf(user) });
  const isPending = async () => (await log.ends())[partition]?.endsWith("+");
  while (await isPending()) await log.read(partition, "0 -" as Cursor, 1);
}

/** Returns the signals of a subject, in any order. */
async function signalsOf({ signals: { log } }: StoreWithSignals, user: string): Promise<Signal[]> {
  const found: Signal[] = [];
  for (let after: number | undefined = 0; after !== undefined; ) {
    const page = await log.ofSubject(user, after, 100);
    found.push(...page.signals.map(({ signal }) => signal));
    after = page.next;
  }
  return inOrder(found);
}

const inOrder = (signals: readonly Signal[]) => signals.toSorted((a, b) => (a.id < b.id ? -1 : 1));

const noteIn = (note: ProviderNote, lifeMs: number) => (store: SessionStore) => store.note(note, lifeMs);

/**
 * Maps the reasons `idle` and `expired` to `unknown`. After a session has expired, a store may still know the reason for a while, but the
 * model never does.
 */
function gone(result: RotateOutcome): RotateOutcome {
  return !result.ok && (result.reason === "idle" || result.reason === "expired")
    ? { ok: false, reason: "unknown" }
    : result;
}

async function play(history: readonly Step[]): Promise<void> {
  const model = new ModelStore();
  for (const store of stores) await takeDue(store); // What a history that has failed has left.
  const start = backends.map((backend) => backend.now());
  // Sets the clocks of all stores and of the model to one time, which is a second later than the latest of them. This exceeds the
  // millisecond by which a store may date logins ahead of its clock after all sessions were ended.
  model.now = storeMs(Math.max(...start) + SECOND);
  await Promise.all(backends.map((backend, at) => backend.advance(model.now - (start[at] ?? 0))));

  const keys = [someKey("ES256"), someKey("RS256")];
  const users = [`${subject()}.`, `${subject()}.`];
  const clientId = subject("history");
  const issuer = `https://${clientId}.example`;
  const said = [
    { issuer, usedToken: subject("token") },
    { issuer, endedSession: subject("login") },
  ] as const;
  const sids: SessionId[] = [sidOf(users[0] ?? "")]; // The first id belongs to no session.
  const tokens = new Map<SessionId, TokenFields[]>();
  const onceIds = new Map<string, SessionId>();
  const user = (pick: number) => users[pick % users.length] ?? "";
  const sid = (pick: number) => sids.at(-1 - (pick % sids.length)) ?? sidOf("");
  const all = async <T>(expected: T, ask: (store: SessionStore) => Promise<T>) => {
    for (const store of stores) expect(await ask(store)).toEqual(expected);
  };

  for (const step of history) {
    switch (step.does) {
      case "create": {
        const lifetimes = { idleTimeoutMs: step.idle, absoluteLifetimeMs: 4 * step.idle };
        const required = step.required ? { deviceRequired: true as const } : {};
        const transport = step.transport && { transport: step.transport };
        const jkt = step.proof !== null && step.proof > 1 ? { dpopJkt: someProof(step.proof).thumbprint } : {};
        const client = { userAgent: step.agent, ipAddress: "192.0.2.1", displayName: "" };
        const kind = step.kind && { kind: step.kind };
        const [sessionId, name] = [step.login?.sessionId ?? undefined, step.login?.subject ?? undefined];
        const upstream = step.login && {
          upstream: {
            issuer,
            ...(sessionId !== undefined && { sessionId: `${sessionId}` }),
            ...(name !== undefined && { subject: `${name}` }),
          },
        };
        const actor = step.once === null &&
          step.actor && { actor: { subject: "support", sessionId: sid(step.actor.own) } };
        const session = newSession(user(step.user), {
          clientId: step.isOther ? `${clientId}-other` : clientId,
          client,
          ...kind,
          ...upstream,
          ...lifetimes,
          ...required,
          ...transport,
          ...jkt,
          ...actor,
        });
        const first = nonce();
        const replaces = step.replaces === null ? undefined : sid(step.replaces);
        const limit = step.limit ?? undefined;
        if (step.once !== null) {
          const reserved = `${user(step.user)} ${step.once}`;
          const id = onceIds.get(reserved) ?? session.sid;
          onceIds.set(reserved, id);
          const once = [
            { ...session, sid: id },
            first,
            { cap: step.cap, limit, origin: ORIGIN, reservedMs: RESERVED },
          ] as const;
          const expected = model.create(...once);
          await all(expected, (store) => store.create(...once));
          if (!expected.ok || !expected.isNew) break;
          sids.push(id);
          tokens.set(id, [{ generation: 1, nonce: first, issuedAt: storeMs(0) }]);
          break;
        }
        const options = {
          cap: step.cap,
          limit: step.actor === null ? limit : undefined,
          replaces,
          origin: ORIGIN,
        };
        await all(model.create(session, first, options), (store) => store.create(session, first, options));
        sids.push(session.sid);
        tokens.set(session.sid, [{ generation: 1, nonce: first, issuedAt: storeMs(0) }]);
        if (step.actor?.isAttached) {
          const own = sid(step.actor.own + 1);
          await all(model.attach(session.sid, own), (store) => store.attach(session.sid, own, 4 * IDLE));
        }
        break;
      }
      case "rotate":
      case "mangle": {
        const known = tokens.get(sid(step.session)) ?? [];
        const token = known.at(-1 - (step.does === "rotate" ? step.recent : 0)) ?? known[0];
        const presented =
          step.does === "rotate" && token !== undefined
            ? token
            : {
                generation: Math.max(1, (token?.generation ?? 1) + ("by" in step ? step.by : 0)),
                nonce: nonce(),
                issuedAt: storeMs(model.now),
              };
        const fresh = nonce();
        const device = "device" in step ? presentation(step.device, keys, model.now, clientId) : undefined;
        const seen = "seen" in step && step.seen ? { userAgent: step.seen, ipAddress: "2001:db8::1" } : undefined;
        const expected = model.rotate(sid(step.session), presented, fresh, device, seen);
        await all(expected, async (store) =>
          gone(await store.rotate(sid(step.session), presented, fresh, device, seen)),
        );
        if ("child" in expected && expected.child.nonce === fresh) known.push(expected.child);
        break;
      }
      case "register": {
        const known = tokens.get(sid(step.session)) ?? [];
        const token = known.at(-1 - step.recent) ?? known[0] ?? { generation: 1, nonce: nonce(), issuedAt: storeMs(0) };
        const key = keys[step.key] ?? someKey();
        await all(model.registerKey(sid(step.session), token, key), (store) =>
          store.registerKey(sid(step.session), token, key),
        );
        break;
      }
      case "unbind":
        await all(model.unbind(sid(step.session)), (store) => store.unbind(sid(step.session)));
        break;
      case "wait":
        model.now = later(model.now, step.ms);
        await Promise.all(backends.map((backend) => backend.advance(step.ms)));
        break;
      case "end": {
        const known = tokens.get(sid(step.session)) ?? [];
        const { issuedAt } = known.at(-1 - (step.holder?.recent ?? 0)) ?? { issuedAt: storeMs(0) };
        const holder = step.holder ? { issuedAt, ...proofOf(step.holder.proof, keys) } : undefined;
        await all(model.end(sid(step.session), step.reason, holder), (store) =>
          store.end(sid(step.session), step.reason, ORIGIN, holder),
        );
        break;
      }
      case "endOwned": {
        const { session, target, reason } = step;
        await all(model.endOwned(sid(session), sid(target), reason), (store) =>
          store.endOwned(sid(session), sid(target), reason, ORIGIN),
        );
        break;
      }
      case "endAll": {
        const options = {
          ...(step.except ? { except: sid(step.session) } : {}),
          ...(step.isCaller ? { caller: sid(step.session) } : {}),
        };
        const expected = model.endAll(user(step.user), step.reason, options);
        await all(expected, (store) => store.endAll(user(step.user), step.reason, { ...options, origin: ORIGIN }));
        break;
      }
      case "forget":
        if (step.ends) {
          await all(model.endAll(user(step.user), "revoked_subject", {}), (store) =>
            store.endAll(user(step.user), "revoked_subject", { origin: ORIGIN }),
          );
        }
        await all(model.forget(user(step.user)), (store) => store.forget(user(step.user)));
        break;
      case "endAttached": {
        // Sessions of earlier histories may have to end, too.
        const own = (ended: readonly ExpiredSession[]) => ended.filter((one) => sids.includes(one.sid));
        const bySid = (ended: readonly ExpiredSession[]) => new Map(own(ended).map((one) => [one.sid, one]));
        await all(bySid(model.endAttached()), async (store) => bySid(await store.endAttached()));
        break;
      }
      case "revokeAll": {
        const found = step.session === null ? undefined : model.find(sid(step.session));
        const createdAt = found?.ok ? found.session.createdAt : model.now;
        const before = step.session === null ? undefined : later(createdAt, step.isSpared ? 0 : 1);
        const until = model.revokeAll(before);
        for (const store of stores) {
          expect(await store.revokeAll(before, ORIGIN)).toEqual(until);
          for (const own of users) await appendSignals(store, own);
        }
        break;
      }
      case "elevate": {
        const methods = step.otp ? ["pwd", "otp"] : [];
        const authentication = { time: wallMs(step.time * SECOND), methods, contextClass: step.otp ? "" : "silver" };
        await all(model.elevate(sid(step.session), authentication, step.outdatesTokens), (store) =>
          store.elevate(sid(step.session), authentication, step.outdatesTokens),
        );
        break;
      }
      case "update": {
        const { session, claims, audience, ifVersion, outdatesTokens } = step;
        const change = {
          ...(claims !== undefined && { claims }),
          ...(audience !== undefined && { audience }),
          ...(ifVersion !== undefined && { ifVersion }),
          outdatesTokens,
        };
        await all(model.update(sid(session), change), (store) => store.update(sid(session), change));
        break;
      }
      case "look": {
        await all(model.find(sid(step.session)), (store) => store.find(sid(step.session)));
        await all(model.list(user(step.user)), async (store) => [
          ...(await store.list(user(step.user), 10, undefined)).sessions,
        ]);
        const listed = model.listAll().filter((session) => session.clientId === clientId);
        await all(listed, async (store) => [...(await store.listAll(100, undefined, { clientId })).sessions]);
        for (const login of [
          { issuer, sessionId: `${step.name}` },
          { issuer, subject: `${step.name}` },
        ]) {
          // A store may name sessions that have expired, but it need not.
          const isLive = (sid: SessionId) => model.find(sid).ok;
          const known = new Set(model.sessionsOf(login));
          for (const store of stores) {
            const found = await store.sessionsOf(login);
            expect(new Set(found.filter(isLive))).toEqual(new Set([...known].filter(isLive)));
            expect(found.filter((sid) => !known.has(sid))).toEqual([]);
          }
        }
        for (const note of said) await all(model.isNoted(note), (store) => store.isNoted(note));
        break;
      }
      case "note": {
        const note = said[step.note] ?? said[0];
        model.note(note, step.lifeMs);
        await all(undefined, noteIn(note, step.lifeMs));
      }
    }
  }
  const mine = new Set(sids);
  const isKept = (entry: LogEntry) => mine.has(entry.sid) && entry.expiresAt > model.now;
  await all(new Set<LogEntry>([...model.log, ...model.marks].filter(isKept)), async (store) => {
    const { revocations, staleMarks } = await store.revocations(undefined);
    return new Set<LogEntry>([...revocations, ...staleMarks].filter(isKept));
  });
  for (const own of users) {
    const expected = inOrder(model.signals.filter((signal) => signal.subject === own));
    for (const store of stores) expect(await signalsOf(store, own)).toEqual(expected);
  }
  await all(model.due, async (store) => {
    const left = (await takeDue(store)).filter(({ event: { sid } }) => sid === undefined || mine.has(sid));
    return new Map(left.map(({ key, ...due }) => [key, due]));
  });
  for (const [at, backend] of backends.entries()) {
    const store = stores[at];
    for (const own of users) if (store !== undefined) await forget(backend, store, own);
  }
}

/** Ends what has remained of a history, after which nothing names its users. */
async function forget(backend: Backend, store: SessionStore, user: string): Promise<void> {
  await store.endAll(user, "revoked_subject", { origin: ORIGIN });
  await store.forget(user);
  expect(await backend.placesOf(user)).toEqual([]);
}

test("the model, the embedded store and Redis agree on random histories", async () => {
  await fc.assert(fc.asyncProperty(fc.array(step, { minLength: 60, maxLength: 150, size: "max" }), play), {
    numRuns: 30,
    endOnFailure: true, // Its seed and path repeat a failure. To shrink it would take longer than a test may.
  });
});
