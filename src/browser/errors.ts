/**
 * The reasons why there is no access token.
 *
 * - `ended`: nobody is signed in. Show the login.
 * - `unavailable`: it cannot be known now (offline, an outage, a proxy in the way). Show that, keep the page.
 * - `disposed`: the kit was disposed of.
 */
export type SessionErrorReason = "ended" | "unavailable" | "disposed";

/** `accessToken`, `fetch` and `end` reject with this error. */
export class SessionError extends Error {
  override readonly name = "SessionError";
  declare readonly reason: SessionErrorReason;
  /** @param cause what `fetch` threw, or the response's status */
  constructor(reason: SessionErrorReason, cause?: unknown) {
    super(`session ${reason}`, { cause });
    this.reason = reason;
  }
}
