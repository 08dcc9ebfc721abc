/** The Token Status Lists of the service (draft-ietf-oauth-status-list-20). docs/status-list.md explains their design. */
import { hash } from "node:crypto";
import type { Session } from "../../session/model.ts";
import type { Clock } from "../../session/ports.ts";
import { type StoreMs, secondsOf, storeMs, wallMs } from "../../session/time.ts";
import { ALL_REVOKED, encodeList, NONE_REVOKED, setBits } from "./encode.ts";
import { placeOf } from "./place.ts";
import type { RevokedIndices } from "./revoked-indices.ts";

/** The path of the lists, to which the name of a list is appended. */
export const LISTS_PATH = "/v1/status-lists/";

/** No list is served if the revocations were last known longer ago than this, in ms. The feed has a batch every half second. */
const MAX_AGE_MS = 5_000;
/** A changed list is signed again when it is at least this old, in ms. This bounds the cost of a list, however many logouts there are. */
const MIN_AGE_MS = 1_000;
/** A list may be used for this many times its time to live, in case a newer version cannot be fetched. */
const LIVES = 3;
/** How many signed lists are kept in memory, and their greatest total length. */
const MAX_SIGNED = 1_000;
const MAX_SIGNED_BYTES = 16 * 1024 * 1024;

const NAME = /^([\w-]{8})(?:\.([1-9a-z][0-9a-z]{0,9}))?$/;
const TYP = "statuslist+jwt";

export type SignedList = {
  readonly token: string;
  readonly etag: string;
  /** When the next version is available, in ms since the epoch. */
  readonly nextAt: number;
  readonly ttlMs: number;
};

type Kept = SignedList & { readonly slice: number; readonly lst: string };

/** The compressed bits of a list. */
type Encoded = { readonly lst: string; readonly version: number; readonly madeAtMs: number };

type Deps = {
  readonly issuer: string;
  readonly ttlMs: number;
  readonly signClaims: (typ: string, claims: Readonly<Record<string, unknown>>) => string;
  readonly revoked: Pick<RevokedIndices, "revokedUntil" | "knownAt" | "of">;
  readonly clock: Clock;
};

export class StatusLists {
  readonly #deps: Deps;
  readonly #prefix: string;
  readonly #encoded = new Map<string, Encoded>();
  readonly #signed = new Map<string, Kept>();
  #signedBytes = 0;

  constructor(deps: Deps) {
    this.#deps = deps;
    this.#prefix = deps.issuer.replace(/\/$/, "") + LISTS_PATH;
  }

  /**
   * Returns the claim `status` of a session's access tokens as a JSON member to append. If everyone was logged out before the session was
   * created, the name of the session's list contains the time of that logout. Under a name with an earlier time, or with none, all sessions
   * are served as revoked.
   */
  memberOf({ sid, createdAt }: Pick<Session, "sid" | "createdAt">): string {
    const { list, index } = placeOf(sid);
    const uri = JSON.stringify(`${this.#prefix}${nameOf(list, this.#globalLogoutBefore(createdAt))}`);
    return `,"status":{"status_list":{"idx":${index},"uri":${uri}}}`;
  }

  /** Returns a list; "unavailable" if the revocations are not known; undefined if there is no such list. */
  get(name: string): SignedList | "unavailable" | undefined {
    const [, list, suffix] = NAME.exec(name) ?? [];
    if (list === undefined) return undefined;
    const { revoked, ttlMs } = this.#deps;
    const knownAt = revoked.knownAt(MAX_AGE_MS);
    if (knownAt === undefined) return "unavailable";
    const logoutAt = storeMs(suffix === undefined ? 0 : Number.parseInt(suffix, 36));
    const isAll = (revoked.revokedUntil ?? 0) > logoutAt;
    const lst = isAll ? ALL_REVOKED : this.#encodedOf(list);
    const slice = Math.floor(knownAt / ttlMs);
    const kept = this.#signed.get(name);
    if (kept?.slice === slice && kept.lst === lst) return kept;
    const made = { ...this.#sign(name, lst, slice), slice, lst };
    this.#keep(name, made);
    return made;
  }

  /**
   * Returns the compressed bits of a list, from a cache. A requested name may end with the time of a logout of everyone, which clients can
   * choose. So the key in the cache is the name without that time.
   */
  #encodedOf(list: string): string {
    const { revoked, clock } = this.#deps;
    const { version, indices } = revoked.of(list);
    if (indices.size === 0) {
      this.#encoded.delete(list);
      return NONE_REVOKED;
    }
    const kept = this.#encoded.get(list);
    if (kept !== undefined && (kept.version === version || clock() - kept.madeAtMs < MIN_AGE_MS)) return kept.lst;
    const lst = encodeList(setBits(indices.keys()));
    this.#encoded.set(list, { lst, version, madeAtMs: clock() });
    return lst;
  }

  /** Returns the time of the latest logout of everyone before a session was created, as far as it is known; 0 if there was none. */
  #globalLogoutBefore(createdAt: StoreMs): number {
    const { revokedUntil } = this.#deps.revoked;
    // Before the feed has been read, there may have been a logout at any time. The latest possible logout was 1 ms before the creation.
    if (revokedUntil === undefined) return createdAt - 1;
    return revokedUntil < createdAt ? revokedUntil : 0;
  }

  /** Signs a list. All instances give it the same times and the same entity tag, so that any of them can revalidate it. */
  #sign(name: string, lst: string, slice: number): SignedList {
    const { issuer, ttlMs, signClaims } = this.#deps;
    const iat = secondsOf(wallMs(slice * ttlMs));
    const ttl = Math.floor(ttlMs / 1000);
    const sub = this.#prefix + name;
    const claims = { iss: issuer, sub, iat, exp: iat + LIVES * ttl, ttl, status_list: { bits: 1, lst } };
    const token = signClaims(TYP, claims);
    const header = token.slice(0, token.indexOf("."));
    const digest = hash("sha256", `${header}.${JSON.stringify(claims)}`, "base64url").slice(0, 22);
    return { token, etag: `W/"${digest}"`, nextAt: (slice + 1) * ttlMs, ttlMs };
  }

  #keep(name: string, list: Kept): void {
    this.#forget(name);
    this.#signed.set(name, list);
    this.#signedBytes += list.token.length;
    for (const oldest of this.#signed.keys()) {
      if (this.#signed.size <= MAX_SIGNED && this.#signedBytes <= MAX_SIGNED_BYTES) return;
      this.#forget(oldest);
    }
  }

  #forget(name: string): void {
    this.#signedBytes -= this.#signed.get(name)?.token.length ?? 0;
    this.#signed.delete(name);
  }
}

function nameOf(list: string, logoutAt: number): string {
  return logoutAt === 0 ? list : `${list}.${logoutAt.toString(36)}`;
}
