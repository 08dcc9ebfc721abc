/**
 * The reasons why there is no access token.
 *
 * - `ended`: nobody is signed in. Show the login.
 * - `unavailable`: the state is not known now (offline, an outage, a proxy in the way). Show that, and keep the page.
 * - `disposed`: the page has called `dispose`.
 */
export type SessionErrorReason = "ended" | "unavailable" | "disposed";

/** `accessToken`, `fetch` and `end` reject with this error. */
export class SessionError extends Error {
  override readonly name = "SessionError";
  declare readonly reason: SessionErrorReason;
  /** @param cause the error that `fetch` threw, or the status of the response */
  constructor(reason: SessionErrorReason, cause?: unknown) {
    super(`session ${reason}`, { cause });
    this.reason = reason;
  }
}
