/** A model of the store, with which real stores must agree: the pure function of rotation.ts, with maps in memory. */

import type { SessionLimit } from "../../../src/service/session/admin/limit.ts";
import {
  boundKey,
  type DevicePresentation,
  judgeDevice,
  judgeEnd,
  NO_PRESENTATION,
  provenBy,
} from "../../../src/service/session/devices/binding.ts";
import type { DeviceKey } from "../../../src/service/session/devices/key.ts";
import { isProofKey } from "../../../src/service/session/devices/key.ts";
import type { DueRecord } from "../../../src/service/session/events/events.ts";
import {
  type Authentication,
  bindAtCreation,
  type EndReason,
  type LastSeen,
  type NewSession,
  type ProviderNote,
  type Revocation,
  type Session,
  type SessionId,
  type StaleMark,
  seenBy,
  type UpstreamLogin,
} from "../../../src/service/session/model.ts";
import type {
  AttachOutcome,
  CreateOptions,
  CreateOutcome,
  ElevateOutcome,
  EndAllOutcome,
  EndedSession,
  EndingHolder,
  EndOutcome,
  EndOwnedOutcome,
  ExpiredSession,
  ForgetOutcome,
  Found,
  RegisterKeyOutcome,
  RotateOutcome,
  SessionChange,
  UnbindOutcome,
  UpdateOutcome,
} from "../../../src/service/session/ports.ts";
import {
  decide,
  firstState,
  type RotationState,
  type TokenFields,
} from "../../../src/service/session/rotation/rotation.ts";
import { earliest, later, latest, type StoreMs, storeMs } from "../../../src/service/session/time.ts";
import type { Signal } from "../../../src/service/signals/model.ts";
import { signalOf } from "../../../src/service/store/signal-text.ts";
import { MARKER_LIFE, REUSE_INTERVAL } from "../../support/store/sessions.ts";

/** The request of every operation. */
export const ORIGIN = { admin: "ops", requestId: "r" };
const BY = { admin: ORIGIN.admin };
const IDS = { requestId: ORIGIN.requestId };

type Due = Omit<DueRecord, "key">;
type Unasked = Pick<DueRecord, "cause">;

export class ModelStore {
  /** The sessions in order of creation. */
  readonly #sessions = new Map<SessionId, { session: Session; state: RotationState }>();
  /** The sessions that end with the sessions of their actors, and those of them that have to end. */
  readonly #attached = new Map<SessionId, SessionId>();
  readonly #toEnd = new Set<SessionId>();
  readonly log: Revocation[] = [];
  readonly marks: StaleMark[] = [];
  /** What is to be recorded, by the name of the record. */
  readonly due = new Map<string, Due>();
  /** The signals that name a subject, for a subscription that wants all and reads none. */
  signals: Signal[] = [];
  /** The sessions without the data of their user: they had expired when their subject was forgotten. */
  readonly #blank = new Set<SessionId>();
  /** Until when an id of a session leads to no second one, and a token counts as used. */
  readonly #reservations = new Map<string, StoreMs>();
  now = storeMs(0);
  #endedUntil = storeMs(0);
  /** When the newest session was created, even if it has ended. */
  #newest = storeMs(0);

  create(session: NewSession, childNonce: string, options: CreateOptions): CreateOutcome {
    const { limit, reservedMs } = options;
    const { sid } = session;
    const found = reservedMs === undefined ? undefined : this.#live(sid);
    if (found !== undefined) {
      const nothing = { evicted: [], replaced: undefined, newDevice: false };
      return { ok: true, isNew: false, session: found.session, rotation: found.state, ...nothing };
    }
    if (reservedMs !== undefined && this.now < (this.#reservations.get(sid) ?? 0))
      return { ok: false, reason: "ended" };
    const newDevice = reservedMs === undefined && this.#isNewDevice(session);
    const ended = limit === undefined ? [] : this.#applyLimit(limit, session, options.replaces);
    if (!Array.isArray(ended)) return ended;
    if (reservedMs !== undefined) this.#reservations.set(sid, later(this.now, reservedMs));
    const { evicted, ...created } = this.#create(session, childNonce, options, newDevice);
    const rotation = firstState(childNonce);
    return { ok: true, isNew: true, rotation, ...created, evicted: [...ended, ...evicted] };
  }

  #create(session: NewSession, childNonce: string, { cap, replaces }: CreateOptions, newDevice: boolean) {
    const isReplaced = replaces !== undefined && this.#live(replaces) !== undefined;
    const replaced = isReplaced ? { sid: replaces, actor: this.#end(replaces, "replaced") } : undefined;
    const evicted: EndedSession[] = [];
    const hasActor = (sid: SessionId) => this.#live(sid)?.session.actor !== undefined;
    const alike = () =>
      this.#ofSubject(session.subject).filter((sid) => hasActor(sid) === (session.actor !== undefined));
    while (alike().length >= cap) {
      evicted.push(this.#endLeastUsed(alike().slice(0, 64)));
    }
    const createdAt = latest(this.now, later(this.#endedUntil, 1));
    this.#newest = latest(this.#newest, createdAt);
    const absoluteExpiresAt = later(createdAt, session.absoluteLifetimeMs);
    const created: Session = {
      ...bindAtCreation(session, createdAt),
      createdAt,
      lastRefreshedAt: createdAt,
      idleExpiresAt: earliest(later(createdAt, session.idleTimeoutMs), absoluteExpiresAt),
      absoluteExpiresAt,
    };
    this.#sessions.set(session.sid, { session: created, state: firstState(childNonce) });
    this.#blank.delete(session.sid); // An id that leads to one session may be used again.
    const { sid, clientId, client } = session;
    const names = { sid, ...namesOf(created), clientId, client, ...(newDevice && { newDevice: true as const }) };
    this.#leave(`+${sid}`, { type: "created", ...names });
    this.#signal(created, "created");
    if (newDevice) this.#signal(created, "new_device");
    return { session: created, evicted, replaced, newDevice };
  }

  /** Ends the sessions that the limit does not allow beside a new one. Returns them, or that the limit refuses the new one. */
  #applyLimit(
    limit: SessionLimit,
    session: NewSession,
    replaces: SessionId | undefined,
  ): EndedSession[] | Extract<CreateOutcome, { readonly ok: false }> {
    const { scope, maxSessions, whenExceeded } = limit;
    const isCounted = (sid: SessionId) => {
      const found = this.#live(sid)?.session;
      if (found === undefined || found.subject !== session.subject || found.actor) return false;
      return (
        scope === "subject" ||
        (scope === "client_id" ? found.clientId === session.clientId : found.kind === session.kind)
      );
    };
    const counted = () => this.#ofSubject(session.subject).filter(isCounted);
    const ended: EndedSession[] = [];
    if (replaces !== undefined && isCounted(replaces)) return ended;
    if (whenExceeded === "refuse" && counted().length >= maxSessions) {
      const oldest = counted().slice(0, 64);
      const live = oldest.flatMap((sid) => this.#live(sid)?.session ?? []);
      return {
        ok: false,
        reason: "refused",
        limit,
        live: live.toSorted((a, b) => this.#usedAt(a.sid) - this.#usedAt(b.sid)).slice(0, 10),
      };
    }
    while (counted().length >= maxSessions) {
      ended.push(this.#endLeastUsed(counted().slice(0, whenExceeded === "end_oldest" ? 1 : 64)));
    }
    return ended;
  }

  rotate(
    sid: SessionId,
    token: TokenFields,
    freshNonce: string,
    presentation?: DevicePresentation,
    lastSeen?: LastSeen,
  ): RotateOutcome {
    const found = this.#live(sid);
    if (found === undefined) return { ok: false, reason: this.#wasRevoked(sid) ? "revoked" : "unknown" };
    const { state } = found;
    const verdict = judgeDevice(found.session, token, presentation ?? NO_PRESENTATION, this.now, REUSE_INTERVAL);
    if (verdict === "proof_missing" || verdict === "other_key") {
      return { ok: false, reason: verdict, session: found.session };
    }
    if (verdict === "device_proof_missing" || verdict === "device_required") {
      return { ok: false, reason: verdict, session: found.session };
    }
    if (verdict === "wrong_transport" || verdict === "wrong_client") return { ok: false, reason: verdict };
    if (verdict === "two_holders") {
      return { ok: false, reason: verdict, ...this.#endNamed(found.session, "reuse", { cause: verdict }) };
    }
    const decision = decide(state, token, freshNonce, this.now, REUSE_INTERVAL, verdict === "held");
    if (decision.outcome === "reuse") {
      return { ok: false, reason: "reuse", ...this.#endNamed(found.session, "reuse", {}) };
    }
    const { outcome, next } = decision;
    const proven = provenBy(verdict, outcome);
    const bind = () => boundKey(found.session, presentation ?? NO_PRESENTATION, this.now);
    const session: Session = proven === "first_use" ? { ...found.session, device: bind() } : found.session;
    const usedAt = latest(session.createdAt, this.now);
    const idleExpiresAt = earliest(later(usedAt, session.idleTimeoutMs), session.absoluteExpiresAt);
    const kept = outcome === "repeat" ? session : { ...seenBy(session, lastSeen), lastRefreshedAt: usedAt };
    const after = { ...kept, idleExpiresAt };
    this.#sessions.set(sid, { session: after, state: next });
    const child = { generation: next.generation + 1, nonce: next.childNonce, issuedAt: next.childMintedAt };
    return { ok: true, outcome, session: after, child, now: this.now, device: proven };
  }

  registerKey(sid: SessionId, token: TokenFields, key: DeviceKey): RegisterKeyOutcome {
    const found = this.#live(sid);
    if (found === undefined) return { ok: false, reason: this.#wasRevoked(sid) ? "revoked" : "unknown" };
    if (token.generation < found.state.generation - 1) return { ok: false, reason: "outdated" };
    const { device } = found.session;
    const isSame =
      device !== undefined && !isProofKey(device) && Buffer.compare(device.key.thumbprint, key.thumbprint) === 0;
    if (device !== undefined && !isSame) {
      const isInUse = device.state === "bound" || this.now - device.since <= 2 * REUSE_INTERVAL;
      if (isInUse) return { ok: false, reason: "other_key" };
    }
    const session: Session = isSame
      ? found.session
      : { ...found.session, device: { key, state: "registered", since: this.now } };
    this.#sessions.set(sid, { ...found, session });
    return { ok: true, session, now: this.now };
  }

  unbind(sid: SessionId): UnbindOutcome {
    const found = this.#live(sid);
    if (found === undefined) return { ok: false, reason: this.#wasRevoked(sid) ? "revoked" : "unknown" };
    const { device, ...session } = found.session;
    this.#sessions.set(sid, { ...found, session });
    return { ok: true, session, hadKey: device !== undefined };
  }

  find(sid: SessionId): Found {
    const found = this.#live(sid);
    if (found === undefined) return { ok: false, reason: this.#wasRevoked(sid) ? "revoked" : "unknown" };
    return { ok: true, session: found.session, rotation: found.state, now: this.now };
  }

  list(subject: string): Session[] {
    return this.#ofSubject(subject)
      .map((sid) => this.#live(sid)?.session)
      .filter((session) => session !== undefined)
      .sort((a, b) => b.createdAt - a.createdAt || (a.sid < b.sid ? 1 : -1));
  }

  listAll(): Session[] {
    return [...new Set([...this.#sessions.values()].map(({ session }) => session.subject))]
      .flatMap((subject) => this.list(subject))
      .sort((a, b) => b.createdAt - a.createdAt || (a.sid < b.sid ? 1 : -1));
  }

  end(sid: SessionId, reason: EndReason, holder?: EndingHolder): EndOutcome {
    const live = this.#live(sid);
    if (live === undefined && this.#wasRevoked(sid)) return { ok: false, reason: "already_ended" };
    const verdict = live && holder ? judgeEnd(live.session, holder, holder.proof) : "allowed";
    if (live !== undefined && verdict !== "allowed") {
      return { ok: false, reason: verdict, ...namesOf(live.session) };
    }
    if (live !== undefined) return { ok: true, wasLive: true, ...this.#endNamed(live.session, reason) };
    this.#end(sid, reason);
    return { ok: true, wasLive: false };
  }

  endOwned(caller: SessionId, target: SessionId, reason: EndReason): EndOwnedOutcome {
    const subject = this.#live(caller)?.session.subject;
    if (subject === undefined) return { ok: false, reason: "caller_ended" };
    if (this.#live(target)?.session.subject !== subject) return { ok: false, reason: "not_found" };
    const ended = this.#end(target, reason);
    return { ok: true, ...(ended !== undefined && { actor: ended }) };
  }

  endAll(
    subject: string,
    reason: EndReason,
    { except, caller }: { except?: SessionId; caller?: SessionId },
  ): EndAllOutcome {
    if (caller !== undefined && this.#live(caller)?.session.subject !== subject) {
      return { ok: false, reason: "caller_ended" };
    }
    const sids = this.#ofSubject(subject).filter((sid) => sid !== except);
    const ended = sids.map((sid) => ({ sid, actor: this.#end(sid, reason) }));
    return { ok: true, ended, count: ended.length };
  }

  /** Ends all sessions that exist now. Sessions that are created later get a later time of creation, by which they are distinguished. */
  revokeAll(createdBefore?: StoreMs): StoreMs {
    const until = storeMs(Math.min(latest(this.now, this.#newest), (createdBefore ?? Number.POSITIVE_INFINITY) - 1));
    for (const { session } of this.#sessions.values()) {
      const isEnding = session.createdAt > this.#endedUntil && session.createdAt <= until;
      if (isEnding) this.#signal(session, "revoked_all");
    }
    this.#endedUntil = latest(this.#endedUntil, until);
    this.#leave(`*${until}`, { type: "all_ended", revokedUntil: until });
    for (const [sid, own] of this.#attached) {
      if ((this.#sessions.get(own)?.session.createdAt ?? Number.POSITIVE_INFINITY) <= until) this.#toEnd.add(sid);
    }
    return until;
  }

  elevate(sid: SessionId, authentication: Authentication, outdatesTokens: boolean): ElevateOutcome {
    const found = this.#live(sid);
    if (found === undefined) return { ok: false, reason: this.#wasRevoked(sid) ? "revoked" : "unknown" };
    if (found.session.actor !== undefined) return { ok: false, reason: "has_actor" };
    if (authentication.time < (found.session.authentication?.time ?? 0)) return { ok: false, reason: "outdated" };
    const { authentication: former, version = 0, staleBelow = 0 } = found.session;
    const isSame = JSON.stringify(former) === JSON.stringify(authentication);
    const counts = isSame ? outdatesTokens && version === 0 : outdatesTokens || version > 0;
    const counted = counts ? version + 1 : version;
    const elevated = { ...found.session, authentication, ...(counted > 0 && { version: counted }) };
    const session =
      outdatesTokens && counted > staleBelow ? this.#marked(sid, { ...elevated, version: counted }) : elevated;
    this.#sessions.set(sid, { ...found, session });
    return { ok: true, session };
  }

  update(sid: SessionId, { claims, audience, ifVersion, outdatesTokens }: SessionChange): UpdateOutcome {
    const found = this.#live(sid);
    if (found === undefined) return { ok: false, reason: this.#wasRevoked(sid) ? "revoked" : "unknown" };
    const { version = 0, staleBelow = 0, ...before } = found.session;
    if ((ifVersion ?? version) !== version) return { ok: false, reason: "conflict" };
    const after = { ...before, claims: claims ?? before.claims, audience: audience ?? before.audience };
    const isSame = after.claims === before.claims && String(after.audience) === String(before.audience);
    if (isSame && (!outdatesTokens || version === staleBelow))
      return { ok: true, session: found.session, isChanged: false };
    const counted = { ...found.session, ...after, version: isSame ? version : version + 1 };
    const session = outdatesTokens ? this.#marked(sid, counted) : counted;
    this.#sessions.set(sid, { ...found, session });
    if (!isSame) this.#signal(session, "updated");
    return { ok: true, session, isChanged: true };
  }

  /** Logs that access tokens of versions before that of a session are stale, and returns the session. */
  #marked<S extends { readonly version: number }>(sid: SessionId, session: S): S & { readonly staleBelow: number } {
    this.marks.push({ sid, markedAt: this.now, expiresAt: later(this.now, MARKER_LIFE), minVersion: session.version });
    return { ...session, staleBelow: session.version };
  }

  attach(sid: SessionId, own: SessionId): AttachOutcome {
    if (this.#live(own) === undefined) return { ok: false, reason: "ended" };
    this.#attached.set(sid, own);
    return { ok: true };
  }

  endAttached(): ExpiredSession[] {
    const ended = [...this.#toEnd].flatMap((sid) => {
      const live = this.#live(sid);
      return live === undefined ? [] : [{ sid, ...this.#endNamed(live.session, "actor_ended", {}) }];
    });
    this.#toEnd.clear();
    return ended;
  }

  #withinLifetimes(sid: SessionId) {
    const found = this.#sessions.get(sid);
    return found !== undefined && this.now < found.session.idleExpiresAt ? found : undefined;
  }

  #live(sid: SessionId) {
    const found = this.#withinLifetimes(sid);
    return found !== undefined && found.session.createdAt > this.#endedUntil ? found : undefined;
  }

  #ofSubject(subject: string): SessionId[] {
    return [...this.#sessions.keys()].filter((sid) => this.#live(sid)?.session.subject === subject);
  }

  #isNewDevice({ subject, client: { userAgent } }: NewSession): boolean {
    return userAgent !== "" && !this.list(subject).some(({ client }) => client.userAgent === userAgent);
  }

  /** Ends the session that was used longest ago, and of several such sessions the one that was created first. */
  #endLeastUsed(sids: readonly SessionId[]): { readonly sid: SessionId; readonly actor: string | undefined } {
    const [least] = sids.toSorted((a, b) => this.#usedAt(a) - this.#usedAt(b));
    if (least === undefined) throw new Error("there is no session to end");
    return { sid: least, actor: this.#end(least, "session_limit") };
  }

  /** Returns when a live session was last refreshed, also with the same token as before, or else created. */
  #usedAt(sid: SessionId): number {
    const found = this.#live(sid);
    return found === undefined ? 0 : latest(found.session.createdAt, found.state.childServedAt);
  }

  #wasRevoked(sid: SessionId): boolean {
    if (this.log.some((entry) => entry.sid === sid && this.now < entry.expiresAt)) return true;
    const found = this.#withinLifetimes(sid);
    return found !== undefined && found.session.createdAt <= this.#endedUntil;
  }

  #endNamed(session: Session, reason: EndReason, unasked?: Unasked) {
    this.#end(session.sid, reason, unasked);
    return namesOf(session);
  }

  /** Ends a session. @param unasked if no request has asked for it @returns the subject of its actor, if it has one */
  #end(sid: SessionId, reason: EndReason, unasked?: Unasked): string | undefined {
    const session = this.#live(sid)?.session;
    const stored = this.#sessions.get(sid)?.session;
    if (stored !== undefined) this.#signal(stored, reason);
    for (const [other, own] of this.#attached) if (own === sid) this.#toEnd.add(other);
    if (session !== undefined) this.#leave(sid, { type: "ended", sid, ...namesOf(session), reason }, unasked);
    this.#sessions.delete(sid);
    this.log.push({ sid, revokedAt: this.now, expiresAt: later(this.now, MARKER_LIFE), reason });
    return session?.actor?.subject;
  }

  /** Leaves an event to be recorded. */
  #leave(key: string, event: Omit<Due["event"], "time">, unasked?: Unasked): void {
    const by = unasked === undefined ? BY : {};
    const ids = unasked === undefined ? IDS : {};
    this.due.set(key, { event: { time: this.now, ...event, ...by }, since: this.now, ids, ...unasked });
  }

  #signal(session: Session, reason: Signal["reason"]): void {
    if (this.#blank.has(session.sid)) return;
    const { sid, subject, clientId: client, actor, version } = session;
    const what = reason === "updated" ? `updated:${version}` : reason;
    const known = { sid, reason: what, happenedAt: this.now, client, subject };
    this.signals.push(signalOf({ ...known, ...(actor && { actor: actor.subject }) }));
  }

  /** Removes what names a subject, but of its live sessions. It changes no later outcome. What else is removed: contract/forget.ts. */
  forget(subject: string): ForgetOutcome {
    const isLive = (sid: SessionId | undefined) => sid !== undefined && this.#live(sid) !== undefined;
    for (const [key, { event }] of this.due) {
      if (event.subject === subject && !isLive(event.sid)) this.due.delete(key);
    }
    for (const [sid, { session }] of this.#sessions) {
      if (session.subject === subject && !isLive(sid)) this.#blank.add(sid);
    }
    const before = this.signals.length;
    this.signals = this.signals.filter((signal) => signal.subject !== subject || isLive(signal.sessionId));
    return { events: 0, signals: before - this.signals.length };
  }

  note(note: ProviderNote, lifeMs: number): void {
    this.#reservations.set(JSON.stringify(note), later(this.now, lifeMs));
  }

  isNoted(note: ProviderNote): boolean {
    return this.now < (this.#reservations.get(JSON.stringify(note)) ?? 0);
  }

  /** Returns the sessions of a login that have not ended, whether they have expired or not. */
  sessionsOf({ issuer, ...login }: UpstreamLogin): SessionId[] {
    const [[name, value] = []] = Object.entries(login);
    const isOf = ({ upstream }: Session) =>
      upstream?.issuer === issuer && upstream[name as "sessionId" | "subject"] === value;
    return [...this.#sessions].flatMap(([sid, { session }]) => (isOf(session) ? [sid] : []));
  }
}

function namesOf({ subject, actor }: Session) {
  return { subject, ...(actor !== undefined && { actor: actor.subject }) };
}
