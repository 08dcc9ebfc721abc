/** What an operator allows the clients that exchange access tokens (RFC 8693). */

/** The rules for one client. */
export type ExchangePolicy = {
  /** The name of the client's credential. */
  readonly clientId: string;
  /** The client may exchange tokens that are for one of these audiences. */
  readonly subjectTokenAudiences: readonly string[];
  /** What the client may ask for; if it is undefined, those that the exchanged token has, except those of this service. */
  readonly audiences: readonly string[] | undefined;
  /** The names of the claims that the new token keeps, beside those that every token has. */
  readonly claims: readonly string[];
  /** How long a new token may live at most, in ms; if it is undefined, as long as the exchanged one. */
  readonly maxLifetimeMs: number | undefined;
  /** The subjects that may act for others. A text that ends in a star stands for all subjects that begin with the text before it. */
  readonly mayAct: readonly string[];
  /** Whether the client may exchange a token that is bound to another key than its own. The new token is then bound to the client's key. */
  readonly mayRebind: boolean;
};

export function mayAct({ mayAct: subjects }: ExchangePolicy, subject: string): boolean {
  return subjects.some((each) => (each.endsWith("*") ? subject.startsWith(each.slice(0, -1)) : subject === each));
}
