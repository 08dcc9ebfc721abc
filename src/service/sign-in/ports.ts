/** What sign-in needs for creating, elevating and ending sessions (browser-sessions.ts). */
import type { HttpRequest } from "../../platform/listener/handler.ts";
import type { EndedLogin, UsedTokens } from "./backchannel-logout.ts";
import type { User } from "./user.ts";

type SignedIn =
  | { readonly ok: true; readonly cookies: readonly string[] }
  | { readonly ok: false; readonly problem: "too_many" | "too_many_sessions" | "refused" };

/** `cookies` are `Set-Cookie` values. If the session has not ended, as nothing shows which one is meant, they make a repetition succeed. */
type SignedOut = { readonly cookies: readonly string[] } & (
  | {
      readonly ok: true;
      /** Whose session it was, if it was live. */
      readonly subject: string | undefined;
    }
  | { readonly ok: false }
);

/** What sign-in needs of the service. Each function rejects if the store does not respond. */
export interface SessionsOfBrowsers {
  /**
   * Returns the id of the browser's session, whether or not it is live. Of several it is the newest live one, which a refresh serves too;
   * undefined if they have different users.
   */
  current(request: HttpRequest): Promise<string | undefined>;
  /** Creates a session that replaces the browser's former one (`replaces` in session/ports.ts). */
  create(user: User, request: HttpRequest): Promise<SignedIn>;
  /** Records that the user of a session has authenticated again; false if it is not a live session of that user. */
  elevate(sid: string, user: User, request: HttpRequest): Promise<boolean>;
  /** Ends the sessions of a login that a provider has ended, and returns how many. Rejects if some may still be live. */
  readonly endLogin: (login: EndedLogin, request: HttpRequest | undefined) => Promise<number>;
  /** The logout tokens of providers that were used. */
  readonly tokens: UsedTokens;
  /** Ends the session of the browser. @param shown the only session that may end; empty for any. Another one stays, and its cookies do */
  end(request: HttpRequest, shown: string): Promise<SignedOut>;
}
