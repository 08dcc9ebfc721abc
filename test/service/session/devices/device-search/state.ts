/** A state ("world") of the model in world.ts. The present time is 0, and all times are at or before it. */

/** The reuse interval R, in ticks: a tick is half of it. */
export const R = 2;
/** The longest time that a request may be in flight, in ticks. */
export const FLIGHT = 1;
/** The time for which a device cookie is valid, in ticks. */
export const LIFE = 6;
/**
 * The issue time of the longer-lived cookie that names the key of the device (`mark`). It is so early that this cookie never counts as a
 * fresh proof.
 */
export const NEVER_FRESH = -1000;

/** The name of a key. Each key of the browser has a letter as its name. A name is used again when nothing refers to its key any more. */
export type Key = string;
export const THIEF: Key = "thief";
export type Cookie = { readonly key: Key; readonly issuedAt: number };
export type Device = { readonly key: Key; readonly state: "registered" | "bound"; readonly since: number };

export type Refresh = {
  readonly issuedAt: number;
  readonly cookie: Cookie | undefined;
  readonly skipped: boolean;
  readonly sentAt: number;
  /** The issue time of the next refresh token in the response, if the response arrives. */
  readonly response: number | undefined;
  /** Whether the response offers to register a key. */
  readonly offers: boolean;
};

/** A request to the service that registers a key, or renews the device cookie. */
export type Call = {
  readonly kind: "register" | "renew";
  readonly key: Key;
  readonly sentAt: number;
  /** The issue time of the device cookie in the response, or "refused"; undefined before the call has run. */
  readonly response: number | "refused" | undefined;
};

export type Jar = {
  /** When the refresh token in the jar was issued. */
  readonly issuedAt: number;
  readonly cookie: Cookie | undefined;
  readonly mark: Key | undefined;
};

type Thief = Jar & { readonly copiedAt: number; readonly own: Cookie | undefined };

export type World = {
  readonly device: Device | undefined;
  readonly mintedAt: number;
  readonly jar: Jar;
  /** The key that the browser holds. */
  readonly key: Key | undefined;
  /** Whether a response has asked the browser to register a key, and the browser has not yet begun to do so. */
  readonly offered: boolean;
  readonly refreshes: readonly Refresh[];
  readonly call: Call | undefined;
  readonly thief: Thief | undefined;
  /** The earlier state that the store may fall back to. */
  readonly replica: { readonly device: Device | undefined } | undefined;
};
