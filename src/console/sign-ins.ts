/**
 * Keeps the sign-ins to the console in the memory of this process, so that signing out ends one at once. A browser holds a random
 * text and never the admin token. Somebody who can read this memory could read the tokens anyway.
 */
import { createHash } from "node:crypto";
import type { Admin, AdminAccess } from "../session/admin-access.ts";
import type { Clock } from "../session/ports.ts";

/** A sign-in without a request ends after this time, ms. */
const IDLE_MS = 30 * 60_000;
/** Every sign-in ends after this time, ms. */
const LIFE_MS = 8 * 3_600_000;
/** One admin token may have this many sign-ins. Beyond it the token's oldest one ends, so that no token displaces those of others. */
const MAX_SIGN_INS = 200;

type SignIn = { readonly token: string; readonly expiresAt: number; idleExpiresAt: number };

type SignedIn = { readonly admin: Admin; readonly token: string; readonly expiresAt: number };

export type SignIns = {
  /** The text for the cookie; undefined if the token is not one of an admin. */
  add(token: string): string | undefined;
  /** What a cookie stands for, while its token is in force. */
  find(cookie: string): SignedIn | undefined;
  remove(cookie: string): void;
};

type Deps = {
  readonly access: Pick<AdminAccess, "byToken">;
  readonly clock: Clock;
  /** A text that nobody can guess. */
  readonly secret: () => string;
};

export function createSignIns({ access, clock, secret }: Deps): SignIns {
  /** The sign-ins by the digest of their cookie, so that the time of a look-up reveals nothing of it; the oldest first. */
  const signIns = new Map<string, SignIn>();
  return {
    add(token) {
      if (access.byToken(token) === undefined) return undefined;
      const cookie = secret();
      const now = clock();
      for (const [key, { idleExpiresAt }] of signIns) if (now >= idleExpiresAt) signIns.delete(key);
      const [oldest, ...others] = [...signIns.keys()].filter((key) => signIns.get(key)?.token === token);
      if (oldest !== undefined && others.length + 1 >= MAX_SIGN_INS) signIns.delete(oldest);
      signIns.set(digest(cookie), { token, expiresAt: now + LIFE_MS, idleExpiresAt: now + IDLE_MS });
      return cookie;
    },
    find(cookie) {
      const key = digest(cookie);
      const found = signIns.get(key);
      if (found === undefined) return undefined;
      const now = clock();
      const admin = access.byToken(found.token);
      if (admin === undefined || now >= found.idleExpiresAt) {
        signIns.delete(key);
        return undefined;
      }
      found.idleExpiresAt = Math.min(now + IDLE_MS, found.expiresAt);
      return { admin, token: found.token, expiresAt: found.expiresAt };
    },
    remove: (cookie) => void signIns.delete(digest(cookie)),
  };
}

function digest(text: string): string {
  return createHash("sha256").update(text).digest("base64url");
}
