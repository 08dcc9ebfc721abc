/** The records of the sign-ins to the console, in the memory of one process: the service's own, or that of the workers' supervisor. */
import type { Clock } from "../../session/ports.ts";

/** A sign-in without a request ends after this time, in ms. */
const IDLE_MS = 30 * 60_000;
/** Every sign-in ends after this time, in ms. */
const LIFE_MS = 8 * 3_600_000;
/**
 * How many sign-ins one admin token may have. Above this number the oldest sign-in of the token ends, so that no token displaces the
 * sign-ins of others.
 */
const MAX_SIGN_INS = 200;

type SignIn = { readonly token: string; readonly expiresAt: number; idleExpiresAt: number };
type Found = { readonly token: string; readonly expiresAt: number };

/** An operation on the records. The key is the digest of a cookie. */
export type RecordsCall =
  | { readonly operation: "add"; readonly key: string; readonly token: string }
  | { readonly operation: "find"; readonly key: string }
  | { readonly operation: "remove"; readonly key: string };

/** Carries out an operation. Only `find` has a result: undefined if there is no such sign-in, or if it has ended. */
export type SignInRecords = (call: RecordsCall) => Found | undefined | Promise<Found | undefined>;

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
