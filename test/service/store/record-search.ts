/**
 * Every creation and every end of a session is recorded exactly once. Each step is interrupted in every possible way, and repeated or not,
 * while replies about records are lost at random. Every backend runs all combinations.
 */
import { expect, test } from "vitest";
import { revoke, revokeAll, revokeSubject } from "../../../src/service/session/admin/admin.ts";
import { create } from "../../../src/service/session/admin/create.ts";
import type { SessionLimit } from "../../../src/service/session/admin/limit.ts";
import type { AuditEvent, Requester } from "../../../src/service/session/audit.ts";
import { logout, logoutByRefreshTokens } from "../../../src/service/session/endings/logout.ts";
import type { SessionEventLog } from "../../../src/service/session/events/events.ts";
import { EventRecorder } from "../../../src/service/session/events/record-events.ts";
import type { SessionId } from "../../../src/service/session/model.ts";
import { revokeOthers, revokeOwn } from "../../../src/service/session/own-sessions.ts";
import {
  type AccessClaims,
  type RefreshToken,
  type SessionStore,
  StoreUnavailable,
} from "../../../src/service/session/ports.ts";
import { refresh } from "../../../src/service/session/rotation/refresh.ts";
import { storeMs, toWallClock, wallMs } from "../../../src/service/session/time.ts";
import { deviceTools } from "../../support/device-tools.ts";
import type { Backend } from "../../support/store/backends.ts";
import { newSession, nonce, REUSE_INTERVAL, SECOND, sidOf, subject } from "../../support/store/sessions.ts";

export const RETENTION = 86_400 * SECOND;
const MAX_STEP_MS = 10 * SECOND;
export const ROUND_MS = 5 * SECOND;
const MAX_ROUNDS = 200;

/**
 * The ways to interrupt a step: not at all, before it takes effect, or after that, so that its caller or its instance never learns of the
 * effect.
 */
const CUTS = [
  "none",
  "not done",
  "reply lost",
  "instance dies before its line",
  "instance is cut off after its line",
] as const;
type Cut = (typeof CUTS)[number];

/** Returns numbers from 0 to 1 that are the same in every run. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

const lost = () => new StoreUnavailable("the reply was lost");

/** The greatest number of calls that fail one after the other. An instance whose calls fail for longer would count as dead. */
const MAX_FAILURES = 3;

type RecordLog = Omit<SessionEventLog, "eventSessions"> & Pick<SessionStore, "shiftMs">;

/**
 * Returns the methods by which the recorder reads and writes event records. Their calls fail at random, before or after they take effect.
 */
function unreliable(log: RecordLog, draw: () => number): RecordLog {
  let failures = 0;
  const cut = async <T>(act: () => Promise<T>): Promise<T> => {
    const chance = failures === MAX_FAILURES ? 1 : draw();
    failures = chance < 0.3 ? failures + 1 : 0;
    if (chance < 0.15) throw lost();
    const result = await act();
    if (chance < 0.3) throw lost();
    return result;
  };
  return {
    recordEvents: (...given) => cut(() => log.recordEvents(...given)),
    async claimRecord(record) {
      if (draw() < 0.15) throw lost();
      const isClaimed = await log.claimRecord(record);
      if (draw() < 0.15) throw lost();
      return isClaimed;
    },
    dueRecords: () => (draw() < 0.02 ? Promise.reject(lost()) : log.dueRecords()),
    events: (of) => log.events(of),
    shiftMs: (place) => log.shiftMs(place),
  };
}

type Line = { readonly event: AuditEvent; readonly address: string | undefined };

/** The recorder of an instance, with the log lines that it has written. */
export class Instance {
  readonly recorder: EventRecorder;
  readonly lines: Line[];
  #isLost = false;

  constructor(backend: Pick<Backend, "now">, log: RecordLog, lines: Line[] = []) {
    this.lines = lines;
    const connected = <T>(act: () => Promise<T>) => (this.#isLost ? Promise.reject(lost()) : act());
    this.recorder = new EventRecorder({
      log: {
        recordEvents: (...given) => connected(() => log.recordEvents(...given)),
        dueRecords: () => connected(() => log.dueRecords()),
        claimRecord: (record) => connected(() => log.claimRecord(record)),
        shiftMs: (place) => log.shiftMs(place),
      },
      lines: (event, requester) => lines.push({ event, address: requester.address() }),
      clock: () => toWallClock(backend.now(), log.shiftMs()),
      steady: backend.now,
      newId: nonce,
      retentionMs: RETENTION,
      maxStepMs: MAX_STEP_MS,
      onLost: () => {},
    });
  }

  /** Cuts the instance off from the store, as if it were dead. */
  lose(): void {
    this.#isLost = true;
  }

  find(): void {
    this.#isLost = false;
  }
}

type Known = {
  readonly user: string;
  readonly a: SessionId;
  readonly b: SessionId;
  readonly other: SessionId;
  /** The current token of the session `b`. */
  readonly token: RefreshToken;
  readonly at: number;
};
type Deps = { readonly store: SessionStore; readonly audit: EventRecorder["audit"] };

const accessTokens = { issue: () => ({ token: "", expiresAt: wallMs(0) }) };
const claimsOf = ({ user, b }: Known) => ({ sid: b, sub: user, all: {} }) as unknown as AccessClaims;
const noLimit = { take: () => undefined, giveBack() {} };

const LIMIT = { scope: "client_id", maxSessions: 1, whenExceeded: "end_least_recently_used" } as const;

async function logIn(
  deps: Deps,
  { user }: Known,
  requester: Requester,
  cap: number,
  replaces?: SessionId,
  limit?: SessionLimit,
) {
  const tools = { refreshTokens: { mint: () => "", parse: refuse }, accessTokens, createLimit: noLimit };
  const source = { sessionId: sidOf, nonce };
  const { sid, ...wanted } = newSession(user);
  return create({ ...deps, ...tools, random: source, maxSessionsPerSubject: cap }, wanted, requester, {
    replaces,
    limit,
  });
}
const refuse = () => ({ ok: false, reason: "malformed" }) as const;

const toolsOf = ({ store }: Deps) => {
  const device = deviceTools((sid) => store.now(sid));
  return { accessTokens, refreshTokens: { mint: () => "" }, random: { nonce }, refreshLimit: noLimit, device };
};

/** Presents a forged token of the first generation. The session counts as stolen and is ended. */
async function reuse(deps: Deps, { a }: Known, requester: Requester) {
  const token: RefreshToken = { sid: a, generation: 1, nonce: nonce(), issuedAt: storeMs(0) };
  return refresh({ ...deps, ...toolsOf(deps) }, [token], requester);
}

/** Returns a token of the session `a`. */
const oldToken = ({ a }: Known): RefreshToken => ({ sid: a, generation: 1, nonce: "", issuedAt: storeMs(0) });

/** Refreshes with the cookies of two sessions, as after a new login. The older session is ended. */
async function refreshInPlaceOfAnother(deps: Deps, known: Known, requester: Requester) {
  return refresh({ ...deps, ...toolsOf(deps) }, [oldToken(known), known.token], requester);
}

async function logOut(deps: Deps, known: Known, requester: Requester) {
  const caller = { sid: known.a, sub: known.user, aud: ["here"], all: {} } as unknown as AccessClaims;
  return logout(deps, { ok: true, caller, isExpired: false, byCookie: [] }, requester);
}

type Step = (deps: Deps, known: Known, requester: Requester) => Promise<unknown>;
const STEPS: Readonly<Record<string, Step>> = {
  create: (deps, known, requester) => logIn(deps, known, requester, 9),
  "create over the limit": (deps, known, requester) => logIn(deps, known, requester, 1),
  "create within a limit": (deps, known, requester) => logIn(deps, known, requester, 9, undefined, LIMIT),
  "create within a limit in place of another": (deps, known, requester) =>
    logIn(deps, known, requester, 9, known.a, LIMIT),
  "create in place of another": (deps, known, requester) => logIn(deps, known, requester, 9, known.a),
  "create in place of another subject's": (deps, known, requester) => logIn(deps, known, requester, 9, known.other),
  revoke: (deps, { a }, requester) => revoke(deps, a, requester),
  revokeOwn: (deps, known, requester) => revokeOwn(deps, claimsOf(known), known.a, requester),
  revokeOthers: (deps, known, requester) => revokeOthers(deps, claimsOf(known), requester),
  revokeSubject: (deps, { user }, requester) => revokeSubject(deps, user, undefined, requester),
  revokeAll: (deps, { at }, requester) => revokeAll(deps, storeMs(at), requester),
  reuse,
  refreshInPlaceOfAnother,
  logOut,
  logOutByCookie: (deps, known, requester) => logoutByRefreshTokens(deps, [oldToken(known)], requester),
};

const MUTATING = new Set(["create", "end", "endOwned", "endAll", "revokeAll", "rotate"]);

/** Returns a store whose first step is interrupted. */
function cutShort(store: SessionStore, cut: Cut): SessionStore {
  let isCut = cut === "none" || cut === "instance is cut off after its line";
  return new Proxy(store, {
    get(target, name: keyof SessionStore) {
      const verb = (target[name] as (...given: unknown[]) => Promise<unknown>).bind(target);
      return async (...given: unknown[]) => {
        if (isCut || !MUTATING.has(name)) return verb(...given);
        isCut = true;
        if (cut !== "not done") await verb(...given);
        throw lost();
      };
    },
  });
}

/** Counts the log lines about each event, by the name of the event. */
function tally(names: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return counts;
}

export function nameOf(event: AuditEvent): string {
  return event.event === "all_sessions_ended"
    ? `${event.event} ${event.revokedUntil}`
    : `${event.event} ${"sid" in event ? event.sid : ""}`;
}

/** Runs the search on a backend. */
export function recordSearch(start: () => Promise<Backend>): void {
  test.each([1, 2, 3])(
    "every creation and every ending is recorded once, however its step was cut short (seed %i)",
    async (seed) => {
      const backend = await start();
      try {
        await search(backend, random(seed));
      } finally {
        await backend.stop();
      }
    },
  );
}

async function search(backend: Backend, draw: () => number): Promise<void> {
  const store = await backend.open();
  const lines: Line[] = [];
  const open = () => new Instance(backend, unreliable(store, draw), lines);
  const living = [open(), open(), open()];
  const dead: Instance[] = [];
  const cutOff: Instance[] = [];
  const created = new Set<SessionId>();
  /**
   * The events that may have two lines in the log. Their instance wrote the line, and was cut off before it stored that in the record.
   * Another instance then wrote the line again.
   */
  const twice = new Set<string>();
  const sessions: SessionId[] = [];

  const scenarios = Object.entries(STEPS).flatMap(([name, step]) =>
    CUTS.flatMap((cut) => [false, true].map((again) => ({ name, step, cut, again }))),
  );
  let at = 1_000;
  const seen: SessionStore = new Proxy(store, {
    get(target, name: keyof SessionStore) {
      const verb = (target[name] as (...given: unknown[]) => unknown).bind(target);
      if (name !== "create") return verb;
      return (...given: Parameters<SessionStore["create"]>) => {
        created.add(given[0].sid);
        return verb(...given);
      };
    },
  });
  const prepared = await Promise.all(
    scenarios.map(async (scenario) => {
      const [user, stranger] = [subject(), subject()];
      const tokens: RefreshToken[] = [];
      const [a, b, other] = [newSession(user), newSession(user), newSession(stranger)];
      for (const session of [a, b, other]) {
        const first = nonce();
        await store.create(session, first, { cap: 9 });
        const rotated = await store.rotate(session.sid, { generation: 1, nonce: first, issuedAt: storeMs(0) }, nonce());
        if (rotated.ok) tokens.push({ sid: session.sid, ...rotated.child });
        sessions.push(session.sid);
      }
      at += 10;
      const token = tokens[1] as RefreshToken;
      return { ...scenario, known: { user, a: a.sid, b: b.sid, other: other.sid, token, at } };
    }),
  );
  await backend.advance(3 * REUSE_INTERVAL);
  for (const [number, { step, cut, again, known }] of prepared.entries()) {
    const requester: Requester = { address: () => `192.0.2.${number}`, adminName: "support" };
    const mayDie = cut.startsWith("instance");
    const instance = mayDie ? open() : (living[number % 2] as Instance);
    const before = lines.length;
    await step({ store: cutShort(seen, cut), audit: instance.recorder.audit }, known, requester).catch(() => {});
    if (mayDie) {
      instance.lose();
      (cut === "instance is cut off after its line" ? cutOff : dead).push(instance);
      for (const { event } of lines.slice(before)) twice.add(nameOf(event));
    }
    if (!again) continue;
    const retrying = living[(number + 1) % 2] as Instance;
    await step({ store: seen, audit: retrying.recorder.audit }, known, requester);
  }

  // The instances that are neither dead nor cut off must write all remaining events.
  let isDone = false;
  for (let round = 0; round < MAX_ROUNDS && !isDone; round++) {
    await backend.advance(ROUND_MS);
    await Promise.all(living.map(({ recorder }) => recorder.flush()));
    await Promise.all(living.map(({ recorder }) => recorder.lookForDue()));
    isDone = (await store.dueRecords()).every(({ records }) => records.length === 0);
  }
  expect(isDone).toBe(true);
  for (const instance of cutOff) {
    instance.find();
    await instance.recorder.flush();
    await instance.recorder.flush(); // The events are flushed twice, because the first attempt may have failed.
  }
  for (const { recorder } of [...living, ...dead, ...cutOff]) await recorder.close();

  const { revocations } = await store.revocations(undefined);
  const happened = revocations.flatMap(({ sid, reason }) =>
    reason === "reuse" ? [`authn_token_reuse ${sid}`, `session_ended ${sid}`] : [`session_ended ${sid}`],
  );
  for (const sid of created) {
    const found = await store.find(sid);
    if (found.ok || found.reason === "revoked") happened.push(`session_created ${sid}`);
  }
  const written = tally(lines.map(({ event }) => nameOf(event)).filter((name) => !name.startsWith("session_renewed")));
  const expected = tally(happened);
  for (const [name, count] of written) {
    if (name.startsWith("all_sessions_ended")) expected.set(name, 1);
    if (twice.has(name)) written.set(name, count - 1);
  }
  expect(written).toEqual(expected);
  const ofAll = scenarios.filter(({ name, cut, again }) => name === "revokeAll" && (again || cut !== "not done"));
  expect([...expected.keys()].filter((name) => name.startsWith("all_sessions_ended"))).toHaveLength(ofAll.length);
  for (const { event, address } of lines) {
    const isFound = "happenedAt" in event && event.happenedAt !== undefined;
    const isReuse =
      event.event === "authn_token_reuse" || (event.event === "session_ended" && event.reason === "reuse");
    if (!(isFound && isReuse)) expect(address).toMatch(/^192/);
  }

  for (const sid of [...created, ...sessions]) {
    const events = (await store.events({ sid })).filter((event) => event.sid === sid).map(({ type }) => type);
    const due = [...expected.keys()].filter((name) => name.endsWith(sid) && !name.startsWith("authn"));
    expect(events.toSorted()).toEqual(
      due.map((name) => (name.startsWith("session_created") ? "created" : "ended")).sort(),
    );
  }
  const ends = (await store.events({ subject: subject() })).map(({ revokedUntil }) => revokedUntil);
  expect(new Set(ends).size).toBe(ends.length);
}
