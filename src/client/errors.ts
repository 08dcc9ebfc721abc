/** The user has to sign in: the service has confirmed that the session has ended, or there is none. */
export class SessionEnded extends Error {
  override readonly name = "SessionEnded";
}

/**
 * The service did not decide: it could not be reached, is overloaded, or sent an unexpected response. Or the store of the tokens has failed
 * (`cause`). The session may still be live.
 */
export class SessionUnavailable extends Error {
  override readonly name = "SessionUnavailable";
  /** How long the service asks clients to wait, in ms; undefined if it does not. */
  readonly retryAfterMs: number | undefined;

  constructor(message: string, retryAfterMs?: number, options?: ErrorOptions) {
    super(message, options);
    this.retryAfterMs = retryAfterMs;
  }
}
