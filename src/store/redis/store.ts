/**
 * The store on Redis. Every method of the port runs one script on the keys of one partition (scripts.ts, lua/), in one round trip. This
 * module decodes what the scripts return; connection.ts handles failing connections.
 */
import type { DevicePresentation } from "../../session/device-binding.ts";
import type { Origin, SessionEventLog } from "../../session/events.ts";
import type { Authentication, EndReason, NewSession, Place, Revocation, SessionId } from "../../session/model.ts";
import type {
  CreateOutcome,
  ElevateOutcome,
  EndAllOptions,
  EndAllOutcome,
  EndingHolder,
  EndOutcome,
  EndOwnedOutcome,
  Found,
  RevocationBatch,
  RotateOutcome,
  SessionStore,
} from "../../session/ports.ts";
import type { PresentedToken } from "../../session/rotation.ts";
import { type StoreMs, toStoreTime, wallMs } from "../../session/time.ts";
import type { SignalStore, StoreWithSignals } from "../../signals/ports.ts";
import { noteOf } from "../due-text.ts";
import { createInSteps } from "./create.ts";
import { RedisDevices } from "./devices.ts";
import { SubjectEnds } from "./end-all.ts";
import { RedisEvents } from "./events.ts";
import { Expiry } from "./expiry.ts";
import { Link, type LinkOptions } from "./link.ts";
import { SessionLists } from "./lists.ts";
import { LogReader } from "./log-reader.ts";
import { FIRST_TAG, tagOf, tagOfSession, tagOfSubject } from "./partitions.ts";
import {
  decodeSession,
  deviceArguments,
  encodeAuthentication,
  encodeBody,
  holderArguments,
  nonceWords,
  versionOf,
} from "./record.ts";
import { type Acknowledge, createAcknowledger } from "./replicas.ts";
import {
  buffer,
  decodeFound,
  elevateOutcome,
  endOutcome,
  endOwnedOutcome,
  isEnding,
  rotateOutcome,
  sessionId,
} from "./replies.ts";
import { revokeAll } from "./revoke-all.ts";
import type { Argument } from "./script-call.ts";
import { createRedisSignals } from "./signals.ts";
import { subscribe } from "./subscription.ts";

export type RedisStoreOptions = LinkOptions & {
  /** How long an ended session is remembered, in ms. It is at least the longest life of an access token. */
  readonly markerLifeMs: number;
  /** How long the signal log keeps signals that a subscription has not read, in ms. Default: a day. */
  readonly signalsRetentionMs?: number;
};

/**
 * Connects to Redis, and waits for it no longer than for one command. Until Redis is available, calls fail with StoreUnavailable.
 *
 * @throws StoreRefused if Redis can be reached and must not be used
 */
export async function createRedisStore(options: RedisStoreOptions): Promise<StoreWithSignals> {
  const store = new RedisStore(options);
  try {
    await store.start();
    return store;
  } catch (error) {
    await store.close();
    throw error;
  }
}

class RedisStore implements StoreWithSignals {
  readonly #options: RedisStoreOptions;
  readonly #link: Link;
  readonly #acknowledge: Acknowledge;
  readonly #subscription: ReturnType<typeof subscribe>;
  readonly #events: RedisEvents;
  readonly #ends: SubjectEnds;
  readonly #expiry: Expiry;
  readonly #log: LogReader;
  readonly #lists: SessionLists;
  readonly #devices: RedisDevices;
  readonly #clustered: boolean;
  readonly signals: SignalStore;

  readonly recordEvents: SessionEventLog["recordEvents"] = (...given) => this.#events.recordEvents(...given);
  readonly events: SessionEventLog["events"] = (of) => this.#events.events(of);
  readonly dueRecords: SessionEventLog["dueRecords"] = () => this.#events.dueRecords();
  readonly claimRecord: SessionEventLog["claimRecord"] = (record) => this.#events.claimRecord(record);
  readonly registerKey: SessionStore["registerKey"] = (...given) => this.#devices.register(...given);
  readonly unbind: SessionStore["unbind"] = (sid) => this.#devices.unbind(sid);
  readonly list: SessionStore["list"] = (...given) => this.#lists.ofSubject(...given);
  readonly listAll: SessionStore["listAll"] = (...given) => this.#lists.ofAll(...given);
  readonly count: SessionStore["count"] = () => this.#lists.count();
  readonly expire: SessionStore["expire"] = () => this.#expiry.step();

  constructor(options: RedisStoreOptions) {
    this.#options = options;
    this.#link = new Link(options);
    this.#acknowledge = createAcknowledger(options, this.#link.client);
    this.#subscription = subscribe(this.#link.client);
    this.#clustered = options.target.kind === "cluster";
    this.#events = new RedisEvents(this.#link, this.#clustered);
    this.#ends = new SubjectEnds(this.#link, this.#acknowledge, options.markerLifeMs);
    this.#expiry = new Expiry(this.#link, options.markerLifeMs);
    this.#log = new LogReader(this.#link, this.#clustered, (tag) => this.#ends.finish(tag));
    this.#lists = new SessionLists(this.#link, this.#clustered);
    this.#devices = new RedisDevices(this.#link, this.#acknowledge, options.reuseIntervalMs);
    this.signals = createRedisSignals(this.#link, this.#acknowledge, this.#clustered, options.signalsRetentionMs);
  }

  start(): Promise<void> {
    return this.#link.start(this.#acknowledge.ready);
  }

  async create(
    session: NewSession,
    childNonce: string,
    cap: number,
    replaces?: SessionId,
    origin?: Origin,
  ): Promise<CreateOutcome> {
    const { sid, subject, idleTimeoutMs, absoluteLifetimeMs } = session;
    const tag = tagOfSession(sid);
    if (tag !== tagOfSubject(subject)) throw new TypeError("a session id outside its subject's partition");
    // If the session to replace is in another partition, it has another subject, and ending it takes a step of its own. That step comes
    // first: if the other one fails, there is one session too few, which is better than one too many.
    const elsewhere = replaces !== undefined && tagOfSession(replaces) !== tag;
    const endedElsewhere = elsewhere && (await this.endOwned(replaces, replaces, "replaced", origin)).ok;
    const { markerLifeMs } = this.#options;
    const old = elsewhere ? "" : (replaces ?? "");
    const limits = [idleTimeoutMs, absoluteLifetimeMs, encodeBody(session), cap, markerLifeMs, old, versionOf(session)];
    const notes = [noteOf(origin), noteOf(origin, session)];
    const args = [sid, subject, ...nonceWords(childNonce), ...limits, ...notes];
    const [record, replaced, ...evicted] = await createInSteps(this.#link, tag, args);
    const replacedHere = replaced !== undefined && replaced.length > 0;
    await this.#acknowledge(tag, [`s${sid}`, `m${sid}`]); // The session may have ended in the meantime.
    return {
      session: decodeSession(sid, buffer(record), 0),
      evicted: evicted.map(sessionId),
      replaced: endedElsewhere || replacedHere,
    };
  }

  async rotate(
    sid: SessionId,
    token: PresentedToken,
    freshNonce: string,
    device?: DevicePresentation,
  ): Promise<RotateOutcome> {
    const { reuseIntervalMs, markerLifeMs } = this.#options;
    const tag = tagOfSession(sid);
    const [n1, n2] = nonceWords(token.nonce);
    const [f1, f2] = nonceWords(freshNonce);
    const args: Argument[] = [sid, token.generation, n1, n2, token.issuedAt, f1, f2, reuseIntervalMs, markerLifeMs];
    if (device !== undefined) args.push(...deviceArguments(device));
    const reply = await this.#link.run("rotate", [tag], args);
    const outcome = rotateOutcome(sid, reply);
    if (!outcome.ok && "subject" in outcome) await this.#acknowledge(tag, [`m${sid}`]); // The session has ended.
    return outcome;
  }

  async find(sid: SessionId): Promise<Found> {
    return decodeFound(sid, await this.#link.run("find", [tagOfSession(sid)], [sid]));
  }

  async end(sid: SessionId, reason: EndReason, origin?: Origin, holder?: EndingHolder): Promise<EndOutcome> {
    const tag = tagOfSession(sid);
    const subject = origin?.subject ?? "";
    const args = [sid, reason, this.#options.markerLifeMs, noteOf(origin), subject, ...holderArguments(holder)];
    let reply = await this.#link.run("end", [tag], args);
    while (isEnding(reply)) {
      await this.#ends.finish(tag); // Verifiers must learn of the ending before this caller does.
      reply = await this.#link.run("end", [tag], args);
    }
    const outcome = endOutcome(reply);
    await this.#acknowledge(tag, [`m${sid}`]);
    return outcome;
  }

  async endOwned(actor: SessionId, target: SessionId, reason: EndReason, origin?: Origin): Promise<EndOwnedOutcome> {
    const tag = tagOfSession(actor);
    if (tag !== tagOfSession(target)) {
      // A session in another partition has another subject.
      return { ok: false, reason: (await this.find(actor)).ok ? "not_found" : "actor_ended" };
    }
    const args = [actor, target, reason, this.#options.markerLifeMs, noteOf(origin)];
    const outcome = endOwnedOutcome(await this.#link.run("end_owned", [tag], args));
    await this.#acknowledge(tag, outcome.ok ? [`m${target}`] : []);
    return outcome;
  }

  endAll(subject: string, reason: EndReason, options: EndAllOptions = {}): Promise<EndAllOutcome> {
    return this.#ends.endAll(subject, reason, options);
  }

  revokeAll(createdBefore: StoreMs | undefined, origin?: Origin): Promise<StoreMs> {
    const { markerLifeMs } = this.#options;
    return revokeAll(this.#link, this.#acknowledge, this.#clustered, markerLifeMs, createdBefore, origin);
  }

  async elevate(sid: SessionId, authentication: Authentication): Promise<ElevateOutcome> {
    const args = [sid, authentication.time, encodeAuthentication(authentication)];
    const tag = tagOfSession(sid);
    const reply = await this.#link.run("elevate", [tag], args);
    const result = elevateOutcome(sid, reply);
    if (result.ok) await this.#acknowledge(tag, [`s${sid}`, `m${sid}`]);
    return result;
  }

  revocations(cursor: string | undefined): Promise<RevocationBatch> {
    return this.#log.read(cursor);
  }

  onRevocation(wake: (hint: readonly Revocation[]) => void): () => void {
    return this.#subscription.add(wake);
  }

  now(sid: SessionId): StoreMs {
    const clock = this.#link.clock(tagOfSession(sid));
    return toStoreTime(clock.wall(this.#link.now()) ?? wallMs(Date.now()), clock.shiftMs);
  }

  /** Returns the shift of the place's partition. Without a place it is that of the first partition: the clocks of nodes differ only by little. */
  shiftMs(place?: Place): number {
    return this.#link.clock(place === undefined ? FIRST_TAG : tagOf(place)).shiftMs;
  }

  async ping(): Promise<void> {
    await this.#link.ping();
    this.#acknowledge.check();
  }

  async close(): Promise<void> {
    this.#subscription.close();
    this.#acknowledge.close();
    this.#link.close();
  }
}
