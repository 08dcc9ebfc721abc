/**
 * The store on Redis: every verb of the port is one script on the keys of one partition (scripts.ts, lua/), and one
 * round trip. What the scripts return is decoded here; how connections fail is settled in connection.ts.
 */
import type { Authentication, EndReason, NewSession, Revocation, SessionId } from "../../session/model.ts";
import {
  type CreateOutcome,
  type ElevateOutcome,
  type EndAllOutcome,
  type EndOutcome,
  type EndOwnedOutcome,
  type Found,
  InvalidCursor,
  type RevocationBatch,
  type RotateOutcome,
  type SessionPage,
  type SessionStore,
} from "../../session/ports.ts";
import type { PresentedToken } from "../../session/rotation.ts";
import { paginate, parsePosition } from "../page.ts";
import { byClock } from "../shifted.ts";
import { Link, type LinkOptions } from "./link.ts";
import { parseEntries, revokedUntilOf } from "./log-entry.ts";
import { TAGS, tagOfSession, tagOfSubject } from "./partitions.ts";
import { decodeSession, encodeAuthentication, encodeBody, nonceWords } from "./record.ts";
import { type Acknowledge, createAcknowledger } from "./replicas.ts";
import {
  buffer,
  buffers,
  elevateOutcome,
  endOutcome,
  endOwnedOutcome,
  found,
  listed,
  rotateOutcome,
  sessionId,
  text,
} from "./replies.ts";
import { subscribe } from "./subscription.ts";

export type RedisStoreOptions = LinkOptions & {
  /** How long an ended session is remembered: at least the longest access token life, ms. */
  readonly markerLife: number;
};

/** How far back of its cursor a reader of the log looks, ms: by so much the clocks of Redis nodes may differ. */
const CURSOR_SLACK_MS = 5_000;
/** A log that was read no longer ago has little news, ms. */
const RECENT_MS = 10_000;
/** Partitions that are read at once where there may be much. */
const PARTITIONS_PER_READ = 4;

/**
 * Connects, waiting for Redis no longer than one command: until Redis is there, calls fail as unavailable.
 * @throws StoreRefused when Redis can be reached and must not be used
 */
export async function createRedisStore(options: RedisStoreOptions): Promise<SessionStore> {
  const store = new RedisStore(options);
  try {
    await store.start();
    return store;
  } catch (error) {
    await store.close();
    throw error;
  }
}

class RedisStore implements SessionStore {
  readonly #options: RedisStoreOptions;
  readonly #link: Link;
  readonly #acknowledge: Acknowledge;
  readonly #subscription: ReturnType<typeof subscribe>;
  /** Where and when the log was read last. */
  #cursor = "";
  #readAt = 0;

  constructor(options: RedisStoreOptions) {
    this.#options = options;
    this.#link = new Link(options);
    this.#acknowledge = createAcknowledger(options, this.#link.client);
    this.#subscription = subscribe(this.#link.client);
  }

  start(): Promise<void> {
    return this.#link.start(this.#acknowledge.ready);
  }

  async create(session: NewSession, childNonce: string, cap: number, replaces?: SessionId): Promise<CreateOutcome> {
    const { sid, subject, idleTimeout, absoluteLifetime } = session;
    const tag = tagOfSession(sid);
    if (tag !== tagOfSubject(subject)) throw new TypeError("a session id outside its subject's partition");
    // Another partition is another subject: two steps, and this one first. One session too few is better than one too many.
    const elsewhere = replaces !== undefined && tagOfSession(replaces) !== tag;
    const endedElsewhere = elsewhere && (await this.endOwned(replaces, replaces, "replaced")).ok;
    const nonce = nonceWords(childNonce);
    const { markerLife } = this.#options;
    const body = encodeBody(session);
    const old = elsewhere ? "" : (replaces ?? "");
    const args = [sid, subject, ...nonce, idleTimeout, absoluteLifetime, body, cap, markerLife, old];
    const [record, replaced, ...evicted] = buffers(await this.#link.run("create", [tag], args));
    const replacedHere = replaced !== undefined && replaced.length > 0;
    await this.#acknowledge(tag, [`s${sid}`, `m${sid}`]); // it may have been ended meanwhile
    return {
      session: byClock(decodeSession(sid, buffer(record), 0), this.#link.clock(tag).shift),
      evicted: evicted.map(sessionId),
      replaced: endedElsewhere || replacedHere,
    };
  }

  async rotate(sid: SessionId, token: PresentedToken, freshNonce: string): Promise<RotateOutcome> {
    const { reuseInterval, markerLife } = this.#options;
    const tag = tagOfSession(sid);
    const [n1, n2] = nonceWords(token.nonce);
    const [f1, f2] = nonceWords(freshNonce);
    const args = [sid, token.generation, n1, n2, token.issuedAt, f1, f2, reuseInterval, markerLife];
    const reply = await this.#link.run("rotate", [tag], args);
    const outcome = rotateOutcome(sid, reply, this.#link.clock(tag).shift);
    if (!outcome.ok && outcome.reason === "reuse") await this.#acknowledge(tag, [`m${sid}`]);
    return outcome;
  }

  async find(sid: SessionId): Promise<Found> {
    const tag = tagOfSession(sid);
    return found(sid, await this.#link.run("find", [tag], [sid]), this.#link.clock(tag).shift);
  }

  async list(subject: string, limit: number, from: string | undefined): Promise<SessionPage> {
    const position = parsePosition(from); // a bad page token is one in an outage, too
    const tag = tagOfSubject(subject);
    const page = paginate(listed(await this.#link.run("list", [tag], [subject])), limit, position);
    const { shift } = this.#link.clock(tag);
    return shift === 0 ? page : { ...page, sessions: page.sessions.map((session) => byClock(session, shift)) };
  }

  async end(sid: SessionId, reason: EndReason): Promise<EndOutcome> {
    const tag = tagOfSession(sid);
    const outcome = endOutcome(await this.#link.run("end", [tag], [sid, reason, this.#options.markerLife]));
    await this.#acknowledge(tag, [`m${sid}`]);
    return outcome;
  }

  async endOwned(actor: SessionId, target: SessionId, reason: EndReason): Promise<EndOwnedOutcome> {
    const tag = tagOfSession(actor);
    if (tag !== tagOfSession(target)) {
      // Another partition is another subject.
      return { ok: false, reason: (await this.find(actor)).ok ? "not_found" : "actor_ended" };
    }
    const args = [actor, target, reason, this.#options.markerLife];
    const outcome = endOwnedOutcome(await this.#link.run("end_owned", [tag], args));
    await this.#acknowledge(tag, outcome.ok ? [`m${target}`] : []);
    return outcome;
  }

  async endAll(
    subject: string,
    reason: EndReason,
    { except, actor }: { readonly except?: SessionId; readonly actor?: SessionId } = {},
  ): Promise<EndAllOutcome> {
    const tag = tagOfSubject(subject);
    const args = [subject, reason, this.#options.markerLife, except ?? "", actor ?? ""];
    const [outcome, ...sids] = buffers(await this.#link.run("end_all", [tag], args));
    const ended = sids.map(sessionId);
    await this.#acknowledge(tag, ended[0] === undefined ? [] : [`m${ended[0]}`]); // all of them in one step
    return text(outcome) === "actor_ended" ? { ok: false, reason: "actor_ended" } : { ok: true, ended };
  }

  /**
   * One time for all partitions, which none of their sessions was created after when this began. Nodes' clocks differ: a session
   * that a partition creates from then on is created after that time, whatever its clock shows (create.lua).
   */
  async revokeAll(createdBefore: number | undefined): Promise<number> {
    const cluster = this.#options.target.kind === "cluster";
    const slots = cluster ? TAGS.map((tag) => [tag]) : [TAGS];
    const latest = await Promise.all(
      slots.map(async (tags) => Number(text(await this.#link.run("horizon", tags, [])))),
    );
    const { shift } = this.#link.clock(TAGS[0] ?? "");
    const before = (createdBefore ?? Number.POSITIVE_INFINITY) - shift;
    const createdUntil = Math.max(0, Math.min(Math.max(...latest), before - 1));
    const { markerLife } = this.#options;
    await Promise.all(
      TAGS.map(async (tag) => {
        await this.#link.run("revoke_all", [tag], [createdUntil, markerLife]);
        await this.#acknowledge(tag, ["e"]);
      }),
    );
    return createdUntil + shift;
  }

  async elevate(sid: SessionId, authentication: Authentication): Promise<ElevateOutcome> {
    const args = [sid, authentication.time, encodeAuthentication(authentication)];
    const tag = tagOfSession(sid);
    const reply = await this.#link.run("elevate", [tag], args);
    const result = elevateOutcome(sid, reply, this.#link.clock(tag).shift);
    if (result.ok) await this.#acknowledge(tag, [`s${sid}`, `m${sid}`]);
    return result;
  }

  /**
   * The log has no order but time, and every node has its own clock: a cursor is the least time at which any partition
   * was read, and reading resumes a little before it. What was appended since is there, and some of it is delivered twice.
   */
  async revocations(cursor: string | undefined): Promise<RevocationBatch> {
    const since = cursor === undefined ? 0 : parseCursor(cursor) - CURSOR_SLACK_MS;
    const read = async (tags: readonly string[]) =>
      buffers(await this.#link.run("revocations", tags, [since])).map((bytes) => text(bytes));
    const startedAt = performance.now();
    const isNext = cursor === this.#cursor && startedAt - this.#readAt < RECENT_MS;
    const cluster = this.#options.target.kind === "cluster";
    const replies: string[][] = [];
    if (isNext) {
      replies.push(...(await Promise.all((cluster ? TAGS.map((tag) => [tag]) : [TAGS]).map(read))));
    } else {
      // Much may have been appended. It is read piece by piece, so that no script holds up all others for long.
      const piece = cluster ? 1 : PARTITIONS_PER_READ;
      for (let at = 0; at < TAGS.length; at += piece) replies.push(await read(TAGS.slice(at, at + piece)));
    }
    const now = Math.min(...replies.map(([time]) => Number(time)));
    const revocations = replies.flatMap(([, ...entries]) => parseEntries(entries));
    revocations.sort((a, b) => a.revokedAt - b.revokedAt);
    const revokedUntil = Math.max(...replies.map(revokedUntilOf));
    [this.#cursor, this.#readAt] = [`r.${now}`, startedAt];
    return { revocations, revokedUntil, cursor: this.#cursor, now };
  }

  onRevocation(wake: (hint: readonly Revocation[]) => void): () => void {
    return this.#subscription.add(wake);
  }

  now(sid: SessionId): number {
    return this.#link.clock(tagOfSession(sid)).now(this.#link.now()) ?? Date.now();
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

function parseCursor(cursor: string): number {
  const [, time] = /^r\.(\d{1,15})$/.exec(cursor) ?? [];
  if (time === undefined) throw new InvalidCursor("not a cursor of the Redis store");
  return Number(time);
}
