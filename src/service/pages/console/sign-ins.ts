/**
 * The sign-ins to the console. They are kept in memory, so that signing out takes effect at once. A browser receives a random text and
 * never the admin token. An attacker who can read the memory of the process could read the admin tokens anyway.
 */
import { createHash } from "node:crypto";
import type { Admin, AdminAccess } from "../../session/admin/access.ts";
import type { Clock } from "../../session/ports.ts";

/** A sign-in without a request ends after this time, in ms. */
const IDLE_MS = 30 * 60_000;
/** Every sign-in ends after this time, in ms. */
const LIFE_MS = 8 * 3_600_000;
/** How many sign-ins one admin token may have. Above this number the oldest sign-in of the token ends. */
const MAX_SIGN_INS = 200;

type SignIn = { readonly token: string; readonly expiresAt: number; idleExpiresAt: number };
type Found = { readonly token: string; readonly expiresAt: number };

/** An operation on the records of sign-ins. The key of a record is the digest of the sign-in's cookie. */
export type RecordsCall =
  | { readonly operation: "add"; readonly key: string; readonly token: string }
  | { readonly operation: "find"; readonly key: string }
  | { readonly operation: "remove"; readonly key: string };

/** Carries out an operation. Only `find` has a result: undefined if there is no such sign-in, or if it has ended. */
export type SignInRecords = (call: RecordsCall) => Found | undefined | Promise<Found | undefined>;

/** Keeps the records of sign-ins in the memory of one process: the service's only process, or the supervisor of its worker processes. */
export function createSignInRecords(clock: Clock): (call: RecordsCall) => Found | undefined {
  /** The sign-ins, the oldest first. */
  const signIns = new Map<string, SignIn>();
  const add = (key: string, token: string) => {
    const now = clock();
    for (const [other, { idleExpiresAt }] of signIns) if (now >= idleExpiresAt) signIns.delete(other);
    const [oldest, ...others] = [...signIns.keys()].filter((other) => signIns.get(other)?.token === token);
    if (oldest !== undefined && others.length + 1 >= MAX_SIGN_INS) signIns.delete(oldest);
    signIns.set(key, { token, expiresAt: now + LIFE_MS, idleExpiresAt: now + IDLE_MS });
  };
  const find = (key: string): Found | undefined => {
    const found = signIns.get(key);
    if (found === undefined) return undefined;
    const now = clock();
    if (now >= found.idleExpiresAt) {
      signIns.delete(key);
      return undefined;
    }
    found.idleExpiresAt = Math.min(now + IDLE_MS, found.expiresAt);
    return { token: found.token, expiresAt: found.expiresAt };
  };
  return (call) => {
    if (call.operation === "find") return find(call.key);
    if (call.operation === "add") add(call.key, call.token);
    else signIns.delete(call.key);
    return undefined;
  };
}

type SignedIn = { readonly admin: Admin; readonly token: string; readonly expiresAt: number };

export type SignIns = {
  /** Adds a sign-in. Resolves with the text for the cookie; undefined if the token does not belong to an admin. */
  add(token: string): Promise<string | undefined>;
  /** Resolves with the sign-in of a cookie, as long as its token is valid. */
  find(cookie: string): Promise<SignedIn | undefined>;
  remove(cookie: string): Promise<void>;
};

type Deps = {
  readonly access: Pick<AdminAccess, "byToken">;
  readonly records: SignInRecords;
  /** Returns a text that nobody can guess. */
  readonly secret: () => string;
};

export function createSignIns({ access, records, secret }: Deps): SignIns {
  const remove = async (cookie: string) => void (await records({ operation: "remove", key: digest(cookie) }));
  return {
    async add(token) {
      if (access.byToken(token) === undefined) return undefined;
      const cookie = secret();
      await records({ operation: "add", key: digest(cookie), token });
      return cookie;
    },
    async find(cookie) {
      const found = await records({ operation: "find", key: digest(cookie) });
      if (found === undefined) return undefined;
      const admin = access.byToken(found.token);
      if (admin !== undefined) return { admin, ...found };
      await remove(cookie);
      return undefined;
    },
    remove,
  };
}

/** The records are found by a digest, so that the time of a look-up reveals nothing about the cookie. */
function digest(text: string): string {
  return createHash("sha256").update(text).digest("base64url");
}
