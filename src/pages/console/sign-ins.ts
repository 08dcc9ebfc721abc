/**
 * The sign-ins to the console. They are kept in memory, so that signing out takes effect at once. A browser receives a random text and
 * never the admin token. An attacker who can read the memory of the process could read the admin tokens anyway.
 */
import { createHash } from "node:crypto";
import type { Admin, AdminAccess } from "../../session/admin-access.ts";
import type { SignInRecords } from "./sign-in-records.ts";

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
