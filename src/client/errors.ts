/** The user has to sign in: the service has proven the session over, or there is none. */
export class SessionEnded extends Error {
  override readonly name = "SessionEnded";
}

/** The service did not decide: it could not be reached, is overloaded, or responded with something else. The session may live. */
export class SessionUnavailable extends Error {
  override readonly name = "SessionUnavailable";
  /** How long the service asks to wait, in ms; undefined if it does not say. */
  readonly retryAfterMs: number | undefined;

  constructor(message: string, retryAfterMs?: number, options?: ErrorOptions) {
    super(message, options);
    this.retryAfterMs = retryAfterMs;
  }
}
