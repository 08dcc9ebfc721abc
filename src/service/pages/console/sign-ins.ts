/**
 * The sign-ins to the console. They are kept in memory, so that signing out takes effect at once. A browser receives a random text and
 * never the admin token. An attacker who can read the memory of the process could read the admin tokens anyway.
 */
import { hash } from "node:crypto";
import type { Admin } from "../../session/admin/access.ts";
import type { Clock } from "../../session/ports.ts";
import type { Operator } from "../../sign-in/operators.ts";

/** A sign-in without a request ends after this time, in ms. */
const IDLE_MS = 30 * 60_000;
/** Every sign-in ends after this time, in ms. */
const LIFE_MS = 8 * 3_600_000;
/** How many sign-ins one admin token or operator may have. Above this number the oldest one ends. */
const MAX_SIGN_INS = 200;

/** What somebody has signed in with: an admin token, or a login at the provider. */
export type ConsoleCredential =
  | { readonly kind: "token"; readonly token: string }
  | { readonly kind: "operator"; readonly operator: Operator };

type StoredSignIn = { readonly credential: ConsoleCredential; readonly expiresAt: number };
type SignIn = StoredSignIn & {
  readonly owner: string;
  readonly lifeMs: number;
  readonly beganMs: number;
  idleExpiresAt: number;
  usedMs: number;
};

/** An operation on the records of sign-ins. The key of a record is the digest of the sign-in's cookie. */
export type RecordsCall =
  | { readonly operation: "add"; readonly key: string; readonly credential: ConsoleCredential }
  | { readonly operation: "find"; readonly key: string }
  | { readonly operation: "remove"; readonly key: string };

/** Carries out an operation. Only `find` has a result: undefined if there is no such sign-in, or if it has ended. */
export type SignInRecords = (call: RecordsCall) => StoredSignIn | undefined | Promise<StoredSignIn | undefined>;

/**
 * Keeps the records of sign-ins in the memory of one process: the service's only process, or the supervisor of its worker processes.
 *
 * @param monotonic a clock that is never set, in ms: otherwise a sign-in would last longer when the wall clock is set back
 */
export function createSignInRecords(
  clock: Clock,
  monotonic = () => performance.now(),
): (call: RecordsCall) => StoredSignIn | undefined {
  /** The sign-ins, the oldest first. */
  const signIns = new Map<string, SignIn>();
  const hasEnded = ({ idleExpiresAt, lifeMs, beganMs, usedMs }: SignIn) =>
    clock() >= idleExpiresAt || monotonic() - usedMs >= IDLE_MS || monotonic() - beganMs >= lifeMs;
  const add = (key: string, credential: ConsoleCredential) => {
    const owner = ownerOf(credential);
    const now = clock();
    for (const [other, signIn] of signIns) if (hasEnded(signIn)) signIns.delete(other);
    const [oldest, ...others] = [...signIns.keys()].filter((other) => signIns.get(other)?.owner === owner);
    if (oldest !== undefined && others.length + 1 >= MAX_SIGN_INS) signIns.delete(oldest);
    const beganMs = monotonic();
    const lifeMs = Math.min(LIFE_MS, endOf(credential) - now);
    const idleExpiresAt = now + Math.min(IDLE_MS, lifeMs);
    const times = { expiresAt: now + lifeMs, idleExpiresAt, lifeMs, beganMs, usedMs: beganMs };
    signIns.set(key, { credential, owner, ...times });
  };
  const find = (key: string): StoredSignIn | undefined => {
    const found = signIns.get(key);
    if (found === undefined) return undefined;
    if (hasEnded(found)) {
      signIns.delete(key);
      return undefined;
    }
    found.idleExpiresAt = Math.min(clock() + IDLE_MS, found.expiresAt);
    found.usedMs = monotonic();
    return { credential: found.credential, expiresAt: found.expiresAt };
  };
  return (call) => {
    if (call.operation === "find") return find(call.key);
    if (call.operation === "add") add(call.key, call.credential);
    else signIns.delete(call.key);
    return undefined;
  };
}

const ownerOf = (credential: ConsoleCredential): string =>
  credential.kind === "token"
    ? `token ${credential.token}`
    : `operator ${JSON.stringify([credential.operator.issuer, credential.operator.subject])}`;

/** Returns when the provider of an operator ends a sign-in, in ms since the epoch. */
const endOf = (credential: ConsoleCredential): number =>
  (credential.kind === "operator" ? credential.operator.endsAtMs : undefined) ?? Number.POSITIVE_INFINITY;

type SignedIn = StoredSignIn & { readonly admin: Admin };

export type SignIns = {
  /** Adds a sign-in. Resolves with the text for the cookie; undefined if the credential is not valid. */
  add(credential: ConsoleCredential): Promise<string | undefined>;
  /** Resolves with the sign-in of a cookie, as long as its credential is valid. */
  find(cookie: string): Promise<SignedIn | undefined>;
  remove(cookie: string): Promise<void>;
};

type Deps = {
  /** Returns whose credential it is, and what that may do now; undefined if it is not valid. */
  readonly adminOf: (credential: ConsoleCredential) => Admin | undefined;
  readonly records: SignInRecords;
  /** Returns a text that nobody can guess. */
  readonly secret: () => string;
};

export function createSignIns({ adminOf, records, secret }: Deps): SignIns {
  const remove = async (cookie: string) => void (await records({ operation: "remove", key: digest(cookie) }));
  return {
    async add(credential) {
      if (adminOf(credential) === undefined) return undefined;
      const cookie = secret();
      await records({ operation: "add", key: digest(cookie), credential });
      return cookie;
    },
    async find(cookie) {
      const found = await records({ operation: "find", key: digest(cookie) });
      if (found === undefined) return undefined;
      const admin = adminOf(found.credential);
      if (admin !== undefined) return { admin, ...found };
      await remove(cookie);
      return undefined;
    },
    remove,
  };
}

/** The records are found by a digest, so that the time of a look-up reveals nothing about the cookie. */
const digest = (cookie: string) => hash("sha256", cookie, "base64url");
