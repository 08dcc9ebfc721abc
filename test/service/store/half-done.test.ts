/**
 * Random histories in which a logout of many sessions stops after some of them have ended. Whatever happens before the rest have ended, and
 * whichever instance ends them, every store gives the same results as the model, which ends all sessions in one step.
 */
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { EndReason, SessionId } from "../../../src/service/session/model.ts";
import type { CreateOutcome, EndAllOutcome, SessionStore } from "../../../src/service/session/ports.ts";
import type { TokenFields } from "../../../src/service/session/rotation/rotation.ts";
import { later, storeMs, wallMs } from "../../../src/service/session/time.ts";
import { type Backend, embeddedBackend, redisBackend } from "../../support/store/backends.ts";
import { newSession, nonce, SECOND, subject } from "../../support/store/sessions.ts";
import { ModelStore } from "./model.ts";

const backends: Backend[] = [];
const stores: SessionStore[] = [];

beforeAll(async () => {
  backends.push(await embeddedBackend(), await redisBackend());
  for (const backend of backends) stores.push(await backend.open());
});
afterAll(() => Promise.all(backends.map((backend) => backend.stop())));

/** The number of sessions to create, which is more than two scripts or transactions process. */
const MANY = 150;
const CAP = 10_000;
const reason = fc.constantFrom<EndReason>("revoked_subject", "revoked_others");
const pick = fc.nat(MANY + 20);

const step = fc.oneof(
  { weight: 3, arbitrary: fc.record({ does: fc.constant("begin" as const), reason, except: fc.option(pick) }) },
  { weight: 6, arbitrary: fc.record({ does: fc.constant("part" as const) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      does: fc.constant("endAll" as const),
      reason,
      except: fc.option(pick),
      caller: fc.option(pick),
    }),
  },
  { weight: 3, arbitrary: fc.record({ does: fc.constant("create" as const), replaces: fc.option(pick) }) },
  {
    weight: 3,
    arbitrary: fc.record({ does: fc.constant("createWithin" as const), most: fc.integer({ min: 1, max: 4 }) }),
  },
  { weight: 5, arbitrary: fc.record({ does: fc.constant("rotate" as const), session: pick }) },
  { weight: 3, arbitrary: fc.record({ does: fc.constant("find" as const), session: pick }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constant("end" as const), session: pick }) },
  { weight: 2, arbitrary: fc.record({ does: fc.constant("endOwned" as const), session: pick, target: pick }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constant("elevate" as const), session: pick }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constant("revokeAll" as const) }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constant("forget" as const) }) },
  { weight: 2, arbitrary: fc.record({ does: fc.constant("list" as const) }) },
  { weight: 2, arbitrary: fc.record({ does: fc.constant("wait" as const), ms: fc.constantFrom(1, SECOND) }) },
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

/**
 * Reduces an outcome to the parts that must be equal in all stores. Two things may differ: the order of sessions of one millisecond, and
 * whether another instance has ended some of the sessions.
 */
function counted(outcome: EndAllOutcome) {
  return outcome.ok ? outcome.count : outcome.reason;
}

/**
 * Plays a history on the model and on all stores, and compares their results. The clocks advance by a millisecond after each step that ends
 * all sessions. Otherwise a login in the same millisecond would be dated a millisecond later, and the time of a later end of all sessions
 * would depend on whether the store has already deleted that login.
 */
async function play(history: readonly Step[]): Promise<void> {
  const model = new ModelStore();
  const start = backends.map((backend) => backend.now());
  model.now = storeMs(Math.max(...start) + SECOND);
  const advance = async (ms: number) => {
    model.now = later(model.now, ms);
    await Promise.all(backends.map((backend) => backend.advance(ms)));
  };
  await Promise.all(backends.map((backend, at) => backend.advance(model.now - (start[at] ?? 0))));
  const user = subject();
  const sids: SessionId[] = [];
  const tokens = new Map<SessionId, TokenFields>();
  const sid = (at: number) => sids[at % sids.length] as SessionId;
  const maybe = (at: number | null) => (at === null ? undefined : sid(at));
  const all = async <T>(expected: T, ask: (store: SessionStore) => Promise<T>) => {
    for (const store of stores) expect(await ask(store)).toEqual(expected);
  };
  const create = async (replaces?: SessionId) => {
    const [session, first] = [newSession(user), nonce()];
    await all(model.create(session, first, { cap: CAP, replaces }), (store) =>
      store.create(session, first, { cap: CAP, replaces }),
    );
    sids.push(session.sid);
    tokens.set(session.sid, { generation: 1, nonce: first, issuedAt: storeMs(0) });
  };
  for (let at = 0; at < MANY; at++) {
    await create();
    if (at % 40 === 39) await advance(1);
  }

  let isUnderWay = false;
  for (const step of history) {
    switch (step.does) {
      case "begin": {
        const live = model.list(user).length;
        if (isUnderWay || live < 140) break; // Fewer sessions would be ended in one step, which cannot stop half-way.
        const except = maybe(step.except);
        const options = except === undefined ? {} : { except };
        model.endAll(user, step.reason, options);
        await Promise.all(backends.map((backend) => backend.beginEndAll(user, step.reason, options)));
        await advance(1);
        isUnderWay = true;
        break;
      }
      case "part":
        await Promise.all(backends.map((backend) => backend.endPart(user)));
        break;
      case "endAll": {
        const [except, caller] = [maybe(step.except), maybe(step.caller)];
        const options = { ...(except !== undefined && { except }), ...(caller !== undefined && { caller }) };
        const expected = counted(model.endAll(user, step.reason, options));
        await all(expected, async (store) => counted(await store.endAll(user, step.reason, options)));
        await advance(1);
        break;
      }
      case "create":
        await create(maybe(step.replaces));
        break;
      case "createWithin": {
        const limit = { scope: "client_id", maxSessions: step.most, whenExceeded: "refuse" } as const;
        const [session, first] = [newSession(user), nonce()];
        // Which sessions are listed may differ: those of one millisecond have no order.
        const short = (outcome: CreateOutcome) => ("live" in outcome ? outcome.live.length : outcome);
        const expected = short(model.create(session, first, { cap: CAP, limit }));
        await all(expected, async (store) => short(await store.create(session, first, { cap: CAP, limit })));
        sids.push(session.sid);
        tokens.set(session.sid, { generation: 1, nonce: first, issuedAt: storeMs(0) });
        break;
      }
      case "rotate": {
        const token = tokens.get(sid(step.session)) as TokenFields;
        const fresh = nonce();
        const expected = model.rotate(sid(step.session), token, fresh);
        await all(expected, (store) => store.rotate(sid(step.session), token, fresh));
        if (expected.ok) tokens.set(sid(step.session), expected.child);
        break;
      }
      case "find":
        await all(model.find(sid(step.session)), (store) => store.find(sid(step.session)));
        break;
      case "end":
        await all(model.end(sid(step.session), "logout"), (store) => store.end(sid(step.session), "logout"));
        break;
      case "endOwned": {
        const [caller, target] = [sid(step.session), sid(step.target)];
        await all(model.endOwned(caller, target, "revoked_by_owner"), (store) =>
          store.endOwned(caller, target, "revoked_by_owner"),
        );
        break;
      }
      case "elevate": {
        const authentication = { time: wallMs(SECOND), methods: ["otp"], contextClass: "" };
        await all(model.elevate(sid(step.session), authentication, false), (store) =>
          store.elevate(sid(step.session), authentication),
        );
        break;
      }
      case "revokeAll":
        await all(model.revokeAll(undefined), (store) => store.revokeAll(undefined));
        await advance(1);
        break;
      case "forget":
        // It completes the logout, and ends nothing.
        for (const store of stores) await store.forget(user);
        isUnderWay = false;
        break;
      case "list":
        await all(model.list(user), async (store) => [...(await store.list(user, 500, undefined)).sessions]);
        break;
      case "wait":
        await advance(step.ms);
    }
  }

  for (let at = 0; at < 2 + MANY / 50; at++) await Promise.all(backends.map((backend) => backend.endPart(user)));
  const mine = new Set(sids);
  const entry = (each: { readonly sid: SessionId; readonly reason: EndReason }) => `${each.sid} ${each.reason}`;
  const logged = model.log.map(entry).sort();
  await all(logged, async (store) => {
    const { revocations } = await store.revocations(undefined);
    // Entries may be delivered twice, because the log is read in several calls.
    return [...new Set(revocations.filter((each) => mine.has(each.sid)).map(entry))].sort();
  });
  for (const each of sids) await all(model.find(each), (store) => store.find(each));
}

test("an end of many that stops anywhere is, to all others, done in one step", async () => {
  const history = fc.array(step, { minLength: 20, maxLength: 60, size: "max" });
  await fc.assert(fc.asyncProperty(history, play), { numRuns: 12 });
});
