/**
 * The store that needs no server: one SQLite file, for one machine.
 *
 * Every verb is one transaction, run to its end within one turn of the event loop: it waits for the lock of another process
 * at most, so that nothing acts after its caller has gone. Creating and ending are on
 * disk (fsync) before they are acknowledged. Rotations are written without waiting for the disk: a killed
 * process loses none of them, a power cut may lose the last, and rule 3 of rotation.ts heals that.
 */
import type { DatabaseSync } from "node:sqlite";
import type { EventsOf, SessionEvent } from "../../session/events.ts";
import type { SessionFilter } from "../../session/filter.ts";
import type { Authentication, EndReason, NewSession, Revocation, Session, SessionId } from "../../session/model.ts";
import {
  type CreateOutcome,
  type ElevateOutcome,
  type EndAllOutcome,
  type EndOutcome,
  type EndOwnedOutcome,
  type Found,
  type RevocationBatch,
  type RotateOutcome,
  type SessionPage,
  type SessionStore,
  StoreUnavailable,
} from "../../session/ports.ts";
import { decide, type PresentedToken } from "../../session/rotation.ts";
import { byClock } from "../shifted.ts";
import { createStallGuard, type StallGuard } from "../stall.ts";
import { watchChanges } from "./changes.ts";
import { StoreClock } from "./clock.ts";
import { EmbeddedEvents } from "./events.ts";
import { FileGuard } from "./file-guard.ts";
import { SessionLists } from "./lists.ts";
import { RevocationLog } from "./log.ts";
import type { EmbeddedStoreOptions } from "./options.ts";
import { fixedOf, rotationOf, served, sessionOf, slid } from "./rows.ts";
import { openDatabase, whenUnlocked } from "./schema.ts";
import { SessionTable } from "./session-table.ts";
import { prepareStatements, type Statements } from "./statements.ts";
import { type Durability, Transactions } from "./transactions.ts";

/** @throws StoreUnavailable when the file cannot be opened, is corrupt, or was made by a newer version */
export function createEmbeddedStore(options: EmbeddedStoreOptions): SessionStore {
  try {
    return whenUnlocked(() => openDatabase(options.path, (db) => new EmbeddedStore(db, options)));
  } catch (cause) {
    const fault = cause instanceof Error ? cause.message : String(cause);
    throw new StoreUnavailable(`cannot open ${options.path}: ${fault}`, { cause });
  }
}

class EmbeddedStore implements SessionStore {
  readonly #db: DatabaseSync;
  readonly #sql: Statements;
  readonly #transactions: Transactions;
  readonly #options: EmbeddedStoreOptions;
  readonly #stall: StallGuard;
  readonly #clock: StoreClock;
  readonly #sessions: SessionTable;
  readonly #lists: SessionLists;
  readonly #events: EmbeddedEvents;
  readonly #log: RevocationLog;
  readonly #wakers: ReturnType<typeof watchChanges>;
  /** Entries of the running transaction: published once it is committed. */
  #appended: Revocation[] = [];

  constructor(db: DatabaseSync, options: EmbeddedStoreOptions) {
    this.#db = db;
    this.#options = options;
    this.#stall = createStallGuard(options.reuseInterval);
    this.#clock = new StoreClock(db, options.clock, options.steady);
    this.#sql = prepareStatements(db);
    this.#transactions = new Transactions(db, this.#clock, new FileGuard(options.path));
    this.#sessions = new SessionTable(this.#sql);
    this.#lists = new SessionLists(this.#transactions, this.#sessions, this.#clock);
    this.#events = new EmbeddedEvents(this.#sql, this.#transactions);
    this.#log = new RevocationLog(this.#sql, options.markerLife);
    this.#wakers = watchChanges(this.#sql);
  }

  async create(session: NewSession, childNonce: string, cap: number, replaces?: SessionId): Promise<CreateOutcome> {
    return this.#write("FULL", (now) => {
      const existing = this.#sessions.get(session.sid);
      if (existing !== undefined) return { session: this.#byClock(sessionOf(existing)), evicted: [], replaced: false }; // run twice
      const replaced = replaces !== undefined && this.#sessions.live(replaces, now) !== undefined;
      if (replaced) this.#end(replaces, "replaced", now);
      const live = this.#sessions.liveOf(session.subject, now);
      const evicted = live.slice(0, Math.max(0, live.length - cap + 1));
      for (const sid of evicted) this.#end(sid, "session_limit", now);
      const created = this.#sessions.insert(session, childNonce, now);
      return { session: this.#byClock(created), evicted, replaced };
    });
  }

  async rotate(sid: SessionId, token: PresentedToken, freshNonce: string): Promise<RotateOutcome> {
    // Only a reuse ends a session, and an ending must be on disk: it is decided anew in a durable transaction.
    return (
      this.#write("NORMAL", (now) => this.#rotate(sid, token, freshNonce, now, false)) ??
      this.#write("FULL", (now) => this.#rotate(sid, token, freshNonce, now, true)) ?? { ok: false, reason: "unknown" }
    );
  }

  async find(sid: SessionId): Promise<Found> {
    return this.#transactions.read((now) => {
      const row = this.#sessions.get(sid);
      if (row === undefined) return { ok: false, reason: this.#marked(sid, now) ? "revoked" : "unknown" };
      if (now >= row.idle_expires_at) return { ok: false, reason: "unknown" };
      if (row.ended) return { ok: false, reason: "revoked" };
      return { ok: true, session: this.#byClock(sessionOf(row)), rotation: rotationOf(row), now };
    });
  }

  async list(subject: string, limit: number, from: string | undefined, filter?: SessionFilter): Promise<SessionPage> {
    return this.#lists.ofSubject(subject, limit, from, filter);
  }

  listAll(limit: number, from: string | undefined, filter: SessionFilter): Promise<SessionPage> {
    return this.#lists.ofAll(limit, from, filter);
  }

  async end(sid: SessionId, reason: EndReason): Promise<EndOutcome> {
    return this.#write("FULL", (now) => {
      const live = this.#sessions.live(sid, now);
      if (live === undefined && this.#marked(sid, now)) return { ok: false, reason: "already_ended" };
      this.#end(sid, reason, now);
      return live === undefined ? { ok: true, wasLive: false } : { ok: true, wasLive: true, subject: live.subject };
    });
  }

  async endOwned(actor: SessionId, target: SessionId, reason: EndReason): Promise<EndOwnedOutcome> {
    return this.#write("FULL", (now) => {
      const subject = this.#sessions.live(actor, now)?.subject;
      if (subject === undefined) return { ok: false, reason: "actor_ended" };
      if (this.#sessions.live(target, now)?.subject !== subject) return { ok: false, reason: "not_found" };
      this.#end(target, reason, now);
      return { ok: true };
    });
  }

  async endAll(
    subject: string,
    reason: EndReason,
    { except, actor }: { readonly except?: SessionId; readonly actor?: SessionId } = {},
  ): Promise<EndAllOutcome> {
    return this.#write("FULL", (now) => {
      if (actor !== undefined && this.#sessions.live(actor, now)?.subject !== subject) {
        return { ok: false, reason: "actor_ended" };
      }
      const ended = this.#sessions.liveOf(subject, now).filter((sid) => sid !== except);
      for (const sid of ended) this.#end(sid, reason, now);
      return { ok: true, ended };
    });
  }

  async revokeAll(createdBefore: number | undefined): Promise<number> {
    const createdUntil = this.#write("FULL", (now) => {
      const until = this.#sessions.endAll(createdBefore && createdBefore - this.#clock.shift, now);
      this.#log.appendAll(until, now);
      return until;
    });
    this.#wakers.wake([]);
    return createdUntil + this.#clock.shift;
  }

  async elevate(sid: SessionId, authentication: Authentication): Promise<ElevateOutcome> {
    return this.#write("FULL", (now) => {
      const row = this.#sessions.live(sid, now);
      if (row === undefined) return { ok: false, reason: this.#marked(sid, now) ? "revoked" : "unknown" };
      const before = sessionOf(row);
      if (authentication.time < (before.authentication?.time ?? 0)) return { ok: false, reason: "outdated" };
      const session = { ...before, authentication };
      this.#sql.elevate.run(fixedOf(session), sid);
      return { ok: true, session: this.#byClock(session) };
    });
  }

  async revocations(cursor: string | undefined): Promise<RevocationBatch> {
    return this.#transactions.read(this.#log.readAfter(cursor));
  }

  onRevocation(wake: (hint: readonly Revocation[]) => void): () => void {
    return this.#wakers.add(wake);
  }

  recordEvents(events: readonly SessionEvent[], retention: number): Promise<void> {
    return this.#events.recordEvents(events, retention);
  }

  events(of: EventsOf): Promise<readonly SessionEvent[]> {
    return this.#events.events(of);
  }

  now(): number {
    return this.#clock.wall();
  }

  async ping(): Promise<void> {
    this.#transactions.checkFiles();
    this.#write("NORMAL", () => this.#sql.touch.run()); // only what is really written finds a full disk
  }

  async close(): Promise<void> {
    this.#wakers.close();
    this.#stall.close();
    if (this.#db.isOpen) this.#db.close();
  }

  #rotate(sid: SessionId, token: PresentedToken, freshNonce: string, now: number, mayEnd: boolean) {
    const row = this.#sessions.get(sid);
    if (row === undefined) return { ok: false, reason: this.#marked(sid, now) ? "revoked" : "unknown" } as const;
    if (now >= row.absolute_expires_at) return { ok: false, reason: "expired" } as const;
    if (now >= row.idle_expires_at) return { ok: false, reason: "idle" } as const;
    if (row.ended) return { ok: false, reason: "revoked" } as const;
    const state = rotationOf(row);
    const decision = decide(state, token, freshNonce, now, this.#options.reuseInterval);
    const session = sessionOf(row);
    if (decision.outcome !== "reuse") {
      const { outcome, next } = decision;
      const after = outcome === "repeat" ? session : slid(session, now); // nothing is new, nothing slides
      this.#sql.slide.run(after.lastRefreshedAt, after.idleExpiresAt, JSON.stringify(next), sid);
      return served(outcome, this.#byClock(after), next, now + this.#clock.shift);
    }
    if (!mayEnd) return undefined;
    this.#end(sid, "reuse", now);
    return { ok: false, reason: "reuse", subject: row.subject } as const;
  }

  #byClock(session: Session): Session {
    return byClock(session, this.#clock.shift);
  }

  /** Of a session that is not live: whether it was ended. */
  #marked(sid: SessionId, now: number): boolean {
    return this.#log.has(sid, now) || this.#sessions.endedWithAll(sid, now);
  }

  #end(sid: SessionId, reason: EndReason, now: number): void {
    this.#sql.remove.run(sid);
    this.#appended.push(this.#log.append(sid, reason, now));
  }

  #write<T>(durability: Durability, step: (now: number) => T): T {
    this.#stall.check();
    this.#appended = [];
    const result = this.#transactions.write(durability, step);
    if (this.#appended.length > 0) this.#wakers.wake(this.#appended);
    return result;
  }
}
