/**
 * The model of the domain: plain data that all folders of the service share. All times are the store's (time.ts), but for that of
 * an authentication.
 */
import { type DeviceBinding, isProofKey, thumbprintBytes } from "./devices/key.ts";
import type { StoreMs, WallMs } from "./time.ts";

/**
 * A session's id: base64url of 17 bytes. The first byte is the session's partition (the first byte of the SHA-256 of the subject), the
 * others are random. A text from outside becomes a SessionId only by `parseSessionId`.
 */
export type SessionId = string & { readonly __brand: "SessionId" };

/** Names a part of the store: the part of one session, or of all sessions of a subject. The parts may have different clocks. */
export type StorePart = { readonly sid: SessionId } | { readonly subject: string };

/** The kind of client that has a session. Its application says so at the login. */
export type ClientKind = "browser" | "mobile" | "desktop" | "cli" | "agent" | "tv";

/** The device data of a session, as its user sees it. */
export type ClientData = {
  readonly userAgent: string;
  readonly ipAddress: string;
  readonly displayName: string;
};

/** What a session keeps of the request that last refreshed it: complete or truncated, by the setting LAST_SEEN. */
export type LastSeen = Pick<ClientData, "userAgent" | "ipAddress">;

/** The audience of access tokens, in the form of `aud` (RFC 7519 section 4.1.3): one audience, or a list of several. */
export type Audience = string | readonly [string, ...string[]];

export function audiencesOf(audience: Audience): readonly [string, ...string[]] {
  return typeof audience === "string" ? [audience] : audience;
}

/** Returns the `aud` of a token for these audiences; undefined if there are none, or if one of them is not allowed. */
export function audienceFor(
  audiences: readonly string[],
  isAllowed: (audience: string) => boolean,
): Audience | undefined {
  const [first, ...others] = new Set(audiences);
  if (first === undefined || !audiences.every(isAllowed)) return undefined;
  return others.length === 0 ? first : [first, ...others];
}

/** When and how the user of a session last authenticated. Services check this before they permit sensitive operations (RFC 9470). */
export type Authentication = {
  /** The time that the login page reports; 0 if unknown. It is compared only with the time of a later authentication. */
  readonly time: WallMs;
  /** `amr` (RFC 8176); empty when unknown. */
  readonly methods: readonly string[];
  /** `acr`; empty when unknown. */
  readonly contextClass: string;
};

/** How a refresh token is presented: in a cookie, or in the body of a request to the token endpoint. */
export type Transport = "cookie" | "token";

/**
 * The fields that a session is created with. Stores keep the fields for which they have no form of their own as one JSON text, so an
 * optional field is added only here. The scripts of Redis read three of these fields: `kind`, for limits; `upstream`, to find the sessions
 * of a login; and `actor`, because a session with an actor is never elevated, and does not count among those of its subject.
 */
export type NewSession = {
  readonly sid: SessionId;
  readonly subject: string;
  readonly clientId: string;
  readonly audience: Audience;
  /** Further claims of the session's access tokens: the text of a JSON object that is within the size limit. */
  readonly claims: string;
  readonly client: ClientData;
  readonly idleTimeoutMs: number;
  readonly absoluteLifetimeMs: number;
  /** Absent if nothing is known about the authentication. */
  readonly authentication?: Authentication;
  /** Present if the session must be bound to a device key. */
  readonly deviceRequired?: true;
  /** The only way in which the session's refresh token may be presented; absent if both ways are allowed. */
  readonly transport?: Transport;
  /** The thumbprint of the key that each request must prove (RFC 9449 section 10), base64url; absent if the session has none yet. */
  readonly dpopJkt?: string;
  /** Present if the session's cookies end with the browser. */
  readonly persistent?: false;
  /** Absent if unknown. */
  readonly kind?: ClientKind;
  /** Absent if the subject itself uses the session. */
  readonly actor?: Actor;
  /** Absent if no provider can end the session. */
  readonly upstream?: Upstream;
};

/** All fields, with undefined for those that are absent, so that a forgotten field does not compile. */
type EveryField<Fields> = { readonly [name in keyof Fields]-?: Fields[name] | undefined };

/** Returns the fields that are not undefined. */
export function presentFields<Fields extends object>(every: EveryField<Fields>): Fields {
  return Object.fromEntries(Object.entries(every).filter(([, value]) => value !== undefined)) as Fields;
}

/** Somebody who uses a session in place of its subject, such as support (impersonation). */
export type Actor = {
  readonly subject: string;
  /** For operators; absent if none was given. */
  readonly reason?: string;
  /** The actor's own session, if the application has named it. */
  readonly sessionId?: SessionId;
  /** Present if the session ends when the actor's own session ends. */
  readonly endsWithSession?: true;
};

/** The login at an identity provider that a session came from. The provider may end it (endings/upstream.ts). */
export type Upstream = {
  /** The provider (`iss`). */
  readonly issuer: string;
  /** The provider's session (`sid`); absent if the provider names none. */
  readonly sessionId?: string;
  /** The provider's name for the user (`sub`); absent if it is not known. */
  readonly subject?: string;
};

/** What sessions are found by: a provider's session, or a provider's name for a user. */
export type UpstreamLogin = { readonly issuer: string } & (
  | { readonly sessionId: string }
  | { readonly subject: string }
);

/** What a provider has said, which counts once: a token of it was used, by its `jti`, or one of its sessions is over. */
export type ProviderNote = { readonly issuer: string } & (
  | { readonly usedToken: string }
  | { readonly endedSession: string }
);

/** Returns the parts of a login by which its sessions can be found later. */
export function loginsOf({ issuer, sessionId, subject }: Upstream): readonly UpstreamLogin[] {
  return [
    ...(sessionId === undefined ? [] : [{ issuer, sessionId }]),
    ...(subject === undefined ? [] : [{ issuer, subject }]),
  ];
}

/** How many sessions may end with one session of their actor. */
export const MAX_ATTACHED = 256;

export type Session = Omit<NewSession, "dpopJkt"> & {
  readonly createdAt: StoreMs;
  /** When the newest refresh token was made, or the session. A refresh that gets that token again does not change it. */
  readonly lastRefreshedAt: StoreMs;
  /** When the session ends unless it is refreshed before; never later than `absoluteExpiresAt`. */
  readonly idleExpiresAt: StoreMs;
  readonly absoluteExpiresAt: StoreMs;
  /** Absent if the session has no key. */
  readonly device?: DeviceBinding;
  /** How often the session was updated: `sv` of its access tokens, and its etag. Absent if it never was. */
  readonly version?: number;
  /** Access tokens of a lower version are stale: they say what is not true any more, and are refused. Absent if there are none. */
  readonly staleBelow?: number;
  /** Who made the request at `lastRefreshedAt`; absent until the first refresh, and if such data is not kept. */
  readonly lastSeen?: LastSeen;
};

/** Returns the session with this in place of what it kept of its last refresh; undefined removes that. */
export function seenBy({ lastSeen: _, ...session }: Session, lastSeen: LastSeen | undefined): Session {
  return lastSeen === undefined ? session : { ...session, lastSeen };
}

/** Returns the data that the store keeps of a new session. If the session was created with a key, it is bound to that key. */
export function bindAtCreation(
  { dpopJkt, ...session }: NewSession,
  createdAt: StoreMs,
): Omit<NewSession, "dpopJkt"> & Pick<Session, "device"> {
  if (dpopJkt === undefined) return session;
  const key = { algorithm: "DPoP", thumbprint: thumbprintBytes(dpopJkt) } as const;
  return { ...session, device: { key, state: "bound", since: createdAt } };
}

/** Returns whether a refresh of the session needs a key that cannot leave its device. A DPoP key may be copied, so it does not count. */
export function isDeviceBound({ device }: Pick<Session, "device">): boolean {
  return device?.state === "bound" && !isProofKey(device);
}

/** Why a session ended, for the revocation log, the audit and the feed. `test/service/composition/endings.test.ts` tries every reason. */
export type EndReason =
  | "logout"
  | "revoked_by_owner"
  | "revoked_others"
  | "revoked_by_admin"
  | "revoked_subject"
  | "session_limit"
  | "replaced"
  | "reuse"
  | "expired"
  /** Somebody used the session in place of its subject, and their own session has ended. */
  | "actor_ended"
  /** The identity provider that the session came from has ended its own session. */
  | "upstream_logout";

/** An entry of the revocation log: a session has ended. */
export type Revocation = {
  readonly sid: SessionId;
  readonly revokedAt: StoreMs;
  /** When the last access token of the session expires. */
  readonly expiresAt: StoreMs;
  readonly reason: EndReason;
};

/** An entry of the revocation log that ends no session: access tokens of a session with a version below `minVersion` are stale. */
export type StaleMark = {
  readonly sid: SessionId;
  readonly markedAt: StoreMs;
  /** When the last stale access token expires. */
  readonly expiresAt: StoreMs;
  readonly minVersion: number;
};

export type LogEntry = Revocation | StaleMark;

export function isStaleMark(entry: LogEntry): entry is StaleMark {
  return "minVersion" in entry;
}

const SESSION_ID = /^[A-Za-z0-9_-]{22}[AEIMQUYcgkosw048]$/;

/** Returns the text as a session id, or undefined if the text is not a session id. 17 bytes leave two spare bits, which must be zero. */
export function parseSessionId(text: string): SessionId | undefined {
  return SESSION_ID.test(text) ? (text as SessionId) : undefined;
}
