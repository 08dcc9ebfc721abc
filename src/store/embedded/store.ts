/**
 * The store that needs no server: one SQLite file, for one machine.
 *
 * Every verb is one transaction, run to its end within one turn of the event loop: it waits at most for the lock of another process, so
 * no change happens after its caller has given up. Creating and ending are on disk (fsync) before they are acknowledged. Rotations are
 * written without waiting for the disk: a killed process loses none of them. A power cut may lose the last ones, which rule 3 of
 * rotation.ts handles.
 */
import type { DatabaseSync } from "node:sqlite";
import type { DevicePresentation } from "../../session/device-binding.ts";
import type { DeviceKey } from "../../session/device-ports.ts";
import type { Origin, SessionEventLog } from "../../session/events.ts";
import type { Authentication, EndReason, NewSession, Revocation, SessionId } from "../../session/model.ts";
import {
  type CreateOutcome,
  type ElevateOutcome,
  type EndingHolder,
  type EndOutcome,
  type EndOwnedOutcome,
  type ExpireOutcome,
  type Found,
  type RegisterKeyOutcome,
  type RevocationBatch,
  type RotateOutcome,
  StoreUnavailable,
  type UnbindOutcome,
} from "../../session/ports.ts";
import type { PresentedToken } from "../../session/rotation.ts";
import type { StoreMs } from "../../session/time.ts";
import { DEFAULT_RETENTION_MS, type SignalStore, type StoreWithSignals } from "../../signals/ports.ts";
import { noteOf, REUSE_NOTES } from "../due-text.ts";
import { watchChanges } from "./changes.ts";
import { StoreClock } from "./clock.ts";
import { EmbeddedEvents } from "./events.ts";
import { FileGuard } from "./file-guard.ts";
import { SessionLists } from "./lists.ts";
import { RevocationLog } from "./log.ts";
import type { EmbeddedStoreOptions } from "./options.ts";
import { openDatabase, whenUnlocked } from "./schema.ts";
import { SessionSteps } from "./session-steps.ts";
import { SessionTable } from "./session-table.ts";
import { SignalSteps } from "./signal-steps.ts";
import { createEmbeddedSignals } from "./signals.ts";
import { prepareStatements, type Statements } from "./statements.ts";
import { SubjectSteps } from "./subject-steps.ts";
import { Subjects } from "./subjects.ts";
import { type Durability, Transactions } from "./transactions.ts";

/** @throws StoreUnavailable when the file cannot be opened, is corrupt, or was made by a newer version */
export function createEmbeddedStore(options: EmbeddedStoreOptions): StoreWithSignals {
  try {
    return whenUnlocked(() => openDatabase(options.path, (db) => new EmbeddedStore(db, options)));
  } catch (cause) {
    const fault = cause instanceof Error ? cause.message : String(cause);
    throw new StoreUnavailable(`cannot open ${options.path}: ${fault}`, { cause });
  }
}

class EmbeddedStore implements StoreWithSignals {
  readonly #db: DatabaseSync;
  readonly #sql: Statements;
  readonly #transactions: Transactions;
  readonly #clock: StoreClock;
  readonly #sessions: SessionTable;
  readonly #lists: SessionLists;
  readonly #events: EmbeddedEvents;
  readonly #log: RevocationLog;
  readonly #steps: SessionSteps;
  readonly #subjects: Subjects;
  readonly #signals: SignalSteps;
  readonly signals: SignalStore;
  readonly #wakers: ReturnType<typeof watchChanges>;
  /** The log entries of the running transaction. They are published once it is committed. */
  #appended: Revocation[] = [];

  readonly recordEvents: SessionEventLog["recordEvents"] = (...given) => this.#events.recordEvents(...given);
  readonly events: SessionEventLog["events"] = (of) => this.#events.events(of);
  readonly dueRecords: SessionEventLog["dueRecords"] = () => this.#events.dueRecords();
  readonly claimRecord: SessionEventLog["claimRecord"] = (record) => this.#events.claimRecord(record);
  readonly list: StoreWithSignals["list"] = (...given) => this.#lists.ofSubject(...given);
  readonly listAll: StoreWithSignals["listAll"] = (...given) => this.#lists.ofAll(...given);
  readonly count: StoreWithSignals["count"] = () => this.#lists.count();
  readonly endAll: StoreWithSignals["endAll"] = (user, reason, options = {}) =>
    this.#subjects.endAll(user, reason, options);
  readonly onRevocation: StoreWithSignals["onRevocation"] = (wake) => this.#wakers.add(wake);

  constructor(db: DatabaseSync, options: EmbeddedStoreOptions) {
    this.#db = db;
    this.#clock = new StoreClock(db, options.clock, options.steady);
    this.#sql = prepareStatements(db);
    this.#transactions = new Transactions(db, this.#clock, new FileGuard(options.path));
    this.#sessions = new SessionTable(this.#sql);
    this.#lists = new SessionLists(this.#transactions, this.#sessions);
    this.#events = new EmbeddedEvents(this.#sql, this.#transactions);
    this.#log = new RevocationLog(this.#sql, options.markerLifeMs);
    this.#steps = new SessionSteps({
      sql: this.#sql,
      sessions: this.#sessions,
      log: this.#log,
      reuseIntervalMs: options.reuseIntervalMs,
      endReused: (sid, subject, reason, now) => this.#end(sid, "reuse", now, REUSE_NOTES[reason], subject),
    });
    this.#subjects = new Subjects({
      sql: this.#sql,
      sessions: this.#sessions,
      steps: new SubjectSteps({
        sql: this.#sql,
        sessions: this.#sessions,
        end: (...given) => this.#end(...given),
        endedWithAll: (sid) => this.#signals.appendEndOfAll(sid),
      }),
      end: (...given) => this.#end(...given),
      leaveCreated: (...given) => this.#events.leaveCreated(...given),
      read: (step) => this.#transactions.read(step),
      write: (durability, step) => this.#write(durability, step),
    });
    this.#signals = new SignalSteps(this.#sql, options.signalsRetentionMs ?? DEFAULT_RETENTION_MS);
    this.signals = createEmbeddedSignals(this.#sql, this.#signals, this.#transactions);
    this.#wakers = watchChanges(this.#sql);
  }

  async create(
    session: NewSession,
    childNonce: string,
    cap: number,
    replaces?: SessionId,
    origin?: Origin,
  ): Promise<CreateOutcome> {
    return this.#subjects.create(session, childNonce, cap, replaces, origin);
  }

  async rotate(
    sid: SessionId,
    token: PresentedToken,
    freshNonce: string,
    device?: DevicePresentation,
  ): Promise<RotateOutcome> {
    // A refresh rarely ends a session. If it does, it is decided again in a durable transaction, because an ending must be on disk.
    return (
      this.#write("NORMAL", (now) => this.#steps.rotate(sid, token, freshNonce, device, now, false)) ??
      this.#write("FULL", (now) => this.#steps.rotate(sid, token, freshNonce, device, now, true)) ?? {
        ok: false,
        reason: "unknown",
      }
    );
  }

  async registerKey(sid: SessionId, token: PresentedToken, key: DeviceKey): Promise<RegisterKeyOutcome> {
    return this.#write("FULL", (now) => this.#steps.registerKey(sid, token, key, now));
  }

  async unbind(sid: SessionId): Promise<UnbindOutcome> {
    return this.#write("FULL", (now) => this.#steps.unbind(sid, now));
  }

  async find(sid: SessionId): Promise<Found> {
    return this.#transactions.read((now) => this.#steps.find(sid, now));
  }

  async end(sid: SessionId, reason: EndReason, origin?: Origin, holder?: EndingHolder): Promise<EndOutcome> {
    const outcome = this.#write("FULL", (now): EndOutcome | undefined => {
      const live = this.#sessions.live(sid, now);
      if (live === undefined && this.#sessions.isEnding(sid)) return undefined;
      if (live === undefined && this.#steps.isMarked(sid, now)) return { ok: false, reason: "already_ended" };
      const refusal = this.#steps.mayNotEnd(live, holder);
      if (refusal !== undefined) return refusal;
      const subject = live?.subject ?? origin?.subject;
      this.#end(sid, reason, now, subject === undefined ? "" : noteOf(origin), subject);
      return live === undefined ? { ok: true, wasLive: false } : { ok: true, wasLive: true, subject: live.subject };
    });
    if (outcome !== undefined) return outcome;
    await this.#subjects.finishFor(sid); // Verifiers must learn of the ending before this caller does.
    return this.end(sid, reason, origin, holder);
  }

  async endOwned(actor: SessionId, target: SessionId, reason: EndReason, origin?: Origin): Promise<EndOwnedOutcome> {
    return this.#write("FULL", (now) => {
      const subject = this.#sessions.live(actor, now)?.subject;
      if (subject === undefined) return { ok: false, reason: "actor_ended" };
      if (this.#sessions.live(target, now)?.subject !== subject) return { ok: false, reason: "not_found" };
      this.#end(target, reason, now, noteOf(origin), subject);
      return { ok: true };
    });
  }

  async revokeAll(createdBefore: StoreMs | undefined, origin?: Origin): Promise<StoreMs> {
    const revokedUntil = this.#write("FULL", (now) => {
      const before = Number(this.#sql.endedUntil.get()?.time);
      const until = this.#sessions.endAll(createdBefore, now);
      this.#signals.beginEndOfAll(before, until, now);
      this.#log.appendAll(until, now);
      this.#events.leaveEndOfAll(until, origin, now);
      return until;
    });
    this.#wakers.wake([]);
    return revokedUntil;
  }

  async expire(): Promise<ExpireOutcome> {
    return this.#subjects.expire();
  }

  async elevate(sid: SessionId, authentication: Authentication): Promise<ElevateOutcome> {
    return this.#write("FULL", (now) => this.#steps.elevate(sid, authentication, now));
  }

  async revocations(cursor: string | undefined): Promise<RevocationBatch> {
    const batch = this.#transactions.read(this.#log.readAfter(cursor));
    this.#subjects.resume();
    return batch;
  }

  now(): StoreMs {
    return this.#clock.read();
  }

  shiftMs(): number {
    return this.#clock.shiftMs;
  }

  async ping(): Promise<void> {
    this.#transactions.checkFiles();
    this.#write("NORMAL", () => this.#sql.touch.run()); // A full disk is noticed only by a real write.
  }

  async close(): Promise<void> {
    this.#wakers.close();
    if (this.#db.isOpen) this.#db.close();
  }

  /** @param note the note of the due record */
  #end(sid: SessionId, reason: EndReason, now: StoreMs, note: string, subject = ""): void {
    this.#signals.append(sid, reason, now, subject);
    this.#sql.remove.run(sid);
    this.#events.leaveEnded(sid, reason, note, subject, now);
    this.#appended.push(this.#log.append(sid, reason, now));
  }

  #write<T>(durability: Durability, step: (now: StoreMs) => T): T {
    this.#appended = [];
    const result = this.#transactions.write(durability, step);
    if (this.#appended.length > 0) this.#wakers.wake(this.#appended);
    return result;
  }
}
