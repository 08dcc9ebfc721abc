/** What the domain needs of tokens. */
import type { Audience, Session, SessionId } from "./model.ts";
import type { TokenFields } from "./rotation/rotation.ts";
import type { StoreMs, WallMs } from "./time.ts";

/** A parsed refresh token whose MAC is verified. */
export type RefreshToken = TokenFields & { readonly sid: SessionId };

type RefreshTokenResult =
  | { readonly ok: true; readonly token: RefreshToken }
  | { readonly ok: false; readonly reason: "malformed" | "unknown_key" | "forged" };

export interface RefreshTokens {
  /** Returns the canonical text of a token, under the current MAC key. */
  mint(token: RefreshToken): string;
  /** Parses and verifies a token. It does no I/O: a forged token is refused without the store. */
  parse(text: string): RefreshTokenResult;
}

export type AccessToken = { readonly token: string; readonly expiresAt: WallMs };

export type AccessClaims = {
  readonly sid: SessionId;
  readonly sub: string;
  /** The audiences of the token; never empty. */
  readonly aud: readonly string[];
  readonly exp: number;
  readonly jti: string;
  /** All claims of an access token, by their JWT names. */
  readonly all: Readonly<Record<string, unknown>>;
};

/** A token whose signature, type and issuer are valid. */
export type AuthenticAccessToken =
  | { readonly ok: true; readonly claims: AccessClaims }
  | { readonly ok: false; readonly reason: "malformed" | "unknown_key" | "forged" | "wrong_issuer" };

/** `expired` means that the token is authentic but has expired. */
export type AccessTokenResult =
  | AuthenticAccessToken
  | { readonly ok: false; readonly reason: "expired"; readonly claims: AccessClaims };

/** Who acts for the subject of a token: the claim `act` (RFC 8693 section 4.1). Its own `act` is who acted before. */
export type Actors = { readonly sub: string; readonly act?: Actors };

/** How a token differs from the one that it is made of. */
type Narrowing = {
  readonly audience: Audience;
  readonly clientId: string;
  /** The names of the claims that are kept, beside those that every token of the session has. */
  readonly claims: readonly string[];
  readonly act: Actors | undefined;
  readonly cnf: { readonly jkt: string } | undefined;
  /** When the token ends at the latest. It never outlives the other one. */
  readonly endsAt: StoreMs;
};

export interface AccessTokens {
  /** Signs an access token, which never outlives the session. @param deviceProven whether the client has proven the session's device key */
  issue(session: Session, now: StoreMs, deviceProven?: boolean): AccessToken;
  /** Signs an access token of the same session and version as another one, which can do less. */
  narrow(token: AccessClaims, now: StoreMs, narrowing: Narrowing): AccessToken;
  /** Parses and verifies signature, type, issuer and times; the audience may be any that a session was given. */
  verify(text: string): AccessTokenResult;
}
