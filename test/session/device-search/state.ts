/** The state of the model in world.ts. Its now is 0, all that has happened lies at or before it. */

/** Ticks: half of the reuse interval each. */
export const R = 2;
/** How long a request may be in flight. */
export const FLIGHT = 1;
/** How long a device cookie is fresh. */
export const LIFE = 6;
/** When a mark was issued. */
export const NEVER_FRESH = -1000;

/** The name of a key. Those of the browser are letters, one for each key that anything still knows. */
export type Key = string;
export const THIEF: Key = "thief";
export type Cookie = { readonly key: Key; readonly issuedAt: number };
export type Device = { readonly key: Key; readonly state: "registered" | "bound"; readonly since: number };

export type Refresh = {
  readonly issuedAt: number;
  readonly cookie: Cookie | undefined;
  readonly skipped: boolean;
  readonly sentAt: number;
  /** The issue time of the child in the response, if the response arrives. */
  readonly response: number | undefined;
  /** Whether the response offers to register a key. */
  readonly offers: boolean;
};

/** A registration or a renewal. */
export type Call = {
  readonly kind: "register" | "renew";
  readonly key: Key;
  readonly sentAt: number;
  /** The issue time of the device cookie in the response, or "refused"; undefined before the call has run. */
  readonly response: number | "refused" | undefined;
};

export type Jar = {
  /** When the token was issued. */
  readonly issuedAt: number;
  readonly cookie: Cookie | undefined;
  readonly mark: Key | undefined;
};

export type Thief = Jar & { readonly copiedAt: number; readonly own: Cookie | undefined };

export type World = {
  readonly device: Device | undefined;
  readonly mintedAt: number;
  readonly jar: Jar;
  /** The key that the browser has. */
  readonly key: Key | undefined;
  /** Whether the browser was offered to register a key, and has not done so yet. */
  readonly offered: boolean;
  readonly refreshes: readonly Refresh[];
  readonly call: Call | undefined;
  readonly thief: Thief | undefined;
  /** The earlier state that the store may fall back to. */
  readonly replica: { readonly device: Device | undefined } | undefined;
};
