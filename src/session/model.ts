/** The model of the domain: plain data that all rooms share. All times of sessions are the store's (time.ts). */

import { type DeviceBinding, isProofKey, thumbprintBytes } from "./device-key.ts";
import type { StoreMs, WallMs } from "./time.ts";

/**
 * A session's id: base64url of 17 bytes, the partition (first byte of the subject's SHA-256) and 16
 * random ones. `parseSessionId` is the only way in from outside.
 */
export type SessionId = string & { readonly __brand: "SessionId" };

/** Names the part of the store that has a session, or all sessions of a subject. */
export type Place = { readonly sid: SessionId } | { readonly subject: string };

/** The device of a session, as shown to its user. */
export type ClientData = {
  readonly userAgent: string;
  readonly ipAddress: string;
  readonly displayName: string;
};

/** Who access tokens are for, as `aud` has it (RFC 7519 section 4.1.3): one, or several in a list. */
export type Audience = string | readonly [string, ...string[]];

/** The audiences one by one. */
export function audiencesOf(audience: Audience): readonly [string, ...string[]] {
  return typeof audience === "string" ? [audience] : audience;
}

/** When and how the user of a session last authenticated: what services ask for before they let a user do more (RFC 9470). */
export type Authentication = {
  /** As the login page reports it; 0 when unknown. It is compared with no other time but that of a later authentication. */
  readonly time: WallMs;
  /** `amr` (RFC 8176); empty when unknown. */
  readonly methods: readonly string[];
  /** `acr`; empty when unknown. */
  readonly contextClass: string;
};

/** How a refresh token is presented: in a cookie, or in the body of a request to the token endpoint. */
export type Transport = "cookie" | "token";

/** What a session is created with. */
export type NewSession = {
  readonly sid: SessionId;
  readonly subject: string;
  readonly clientId: string;
  readonly audience: Audience;
  /** Further claims of its access tokens: the text of a JSON object, within its size limit. */
  readonly claims: string;
  readonly client: ClientData;
  readonly idleTimeoutMs: number;
  readonly absoluteLifetimeMs: number;
  /** Absent when nothing is known of it. */
  readonly authentication?: Authentication;
  /** Whether it must be bound to the key of a device; absent if it need not. */
  readonly deviceRequired?: true;
  /** The only way in which its refresh token may be presented; absent if both are allowed. */
  readonly transport?: Transport;
  /** The thumbprint of the key that each request must prove (RFC 9449 section 10), base64url; absent if it has none yet. */
  readonly dpopJkt?: string;
};

/** A session as the store holds it. */
export type Session = Omit<NewSession, "dpopJkt"> & {
  readonly createdAt: StoreMs;
  readonly lastRefreshedAt: StoreMs;
  /** Never later than `absoluteExpiresAt`. */
  readonly idleExpiresAt: StoreMs;
  readonly absoluteExpiresAt: StoreMs;
  /** Absent while it has no key. */
  readonly device?: DeviceBinding;
};

/** Returns what is stored of a session with its key, if it is created with one. */
export function bindAtCreation(
  { dpopJkt, ...session }: NewSession,
  createdAt: StoreMs,
): Omit<NewSession, "dpopJkt"> & Pick<Session, "device"> {
  if (dpopJkt === undefined) return session;
  const key = { algorithm: "DPoP", thumbprint: thumbprintBytes(dpopJkt) } as const;
  return { ...session, device: { key, state: "bound", since: createdAt } };
}

/** Whether refreshing it needs a key that cannot leave its device. A key of DPoP may be anywhere. */
export function isDeviceBound({ device }: Pick<Session, "device">): boolean {
  return device?.state === "bound" && !isProofKey(device);
}

/** Why a session ended, as in the revocation log, the audit events and the feed. A closed list: test/server/endings.test.ts has every way. */
export type EndReason =
  | "logout"
  | "revoked_by_owner"
  | "revoked_others"
  | "revoked_by_admin"
  | "revoked_subject"
  | "session_limit"
  | "replaced"
  | "reuse"
  | "expired";

/** One entry of the revocation log. */
export type Revocation = {
  readonly sid: SessionId;
  readonly revokedAt: StoreMs;
  /** When the last access token of the session has expired. */
  readonly expiresAt: StoreMs;
  readonly reason: EndReason;
};

const SESSION_ID = /^[A-Za-z0-9_-]{22}[AEIMQUYcgkosw048]$/;

/** The session id in a text, or undefined: 17 bytes leave two spare bits, which must be zero. */
export function parseSessionId(text: string): SessionId | undefined {
  return SESSION_ID.test(text) ? (text as SessionId) : undefined;
}
