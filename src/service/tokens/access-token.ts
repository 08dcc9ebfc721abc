import { type CompactJws, readCompactJws, readHeader, readPayload } from "../../platform/jws/compact-jws.ts";
import { KnownSignatures } from "../../platform/jws/known-signatures.ts";
import { isSignature } from "../../platform/jws/public-key.ts";
import { authenticationClaims, RESERVED_CLAIMS, sessionMembers } from "../session/claims.ts";
import { parseSessionId, type Session } from "../session/model.ts";
import type { AccessTokens, AuthenticAccessToken, SessionStore } from "../session/ports.ts";
import { earliest, later, secondsOf, toWallClock, wallMs } from "../session/time.ts";
import { isSigningAlg, type SignatureCheck, type Signer, TYP } from "./jws.ts";
import type { Entropy } from "./random.ts";
import { FORGED, MALFORMED, UNKNOWN_KEY } from "./refresh-token.ts";

/** A key that signs tokens. `header` is the encoded header segment of its tokens. */
export type SigningKey = { readonly kid: string; readonly header: string; readonly sign: Signer };

/** Returns the current keys. It is called for every token, so that a changed key ring takes effect at once. */
export type SigningKeys = {
  readonly current: {
    readonly signing: SigningKey;
    /** The signature checks of all valid keys, by the header segment of their tokens. */
    readonly checks: ReadonlyMap<string, SignatureCheck>;
  };
};

type AccessTokenOptions = {
  readonly keys: SigningKeys;
  readonly issuer: string;
  readonly ttlMs: number;
  readonly entropy: Entropy;
  /** Returns the store's time, and by how much the wall clock is ahead of it. The times in tokens are those of the wall clock. */
  readonly time: Pick<SessionStore, "now" | "shiftMs">;
};

/** A token's life is shortened at random by up to this share, so that refreshes are spread and hard to predict (docs/why/rotation.md). */
const JITTER = 0.2;

/** A longer text is not a token of this service: even 4 KiB of claims, escaped and encoded, are much shorter. */
const MAX_LENGTH = 16_384;

/** The claims by which verifiers find out that a session has ended or changed. Every token that is made of another one keeps them. */
const CLAIMS_OF_SESSION = ["sct", "sv"];

const WRONG_ISSUER = { ok: false, reason: "wrong_issuer" } as const;

/** Signs and verifies access tokens (RFC 9068). A token never outlives its session. */
export function createAccessTokens(options: AccessTokenOptions): AccessTokens {
  const { keys, issuer, ttlMs, entropy, time } = options;
  const iss = JSON.stringify(issuer);
  const signatures = new KnownSignatures<SignatureCheck>();

  function verifyAuthentic(text: string): AuthenticAccessToken {
    const jws = readCompactJws(text, MAX_LENGTH);
    if (jws === undefined || !isSignature(jws.signature)) return MALFORMED;
    // The header is not parsed: it must be identical to the header that tokens of one of the keys have.
    const check = keys.current.checks.get(jws.header);
    if (check === undefined) return rejectHeader(jws);
    return signatures.isValid(text, check, () => check(jws)) ? readClaims(jws, issuer) : FORGED;
  }

  function sign(payload: string): string {
    const { signing } = keys.current;
    const input = `${signing.header}.${Buffer.from(payload).toString("base64url")}`;
    return `${input}.${signing.sign(input)}`;
  }

  return {
    /**
     * Signs a token. `exp` is rounded down to whole seconds so that it never passes an expiry of the session. If less than a second of
     * the session is left, the token has expired already, and its holder must log in, as the session is about to end.
     */
    issue(session, now, deviceProven = false) {
      const lifeMs = ttlMs - Math.floor(ttlMs * JITTER * entropy.fraction());
      const end = earliest(earliest(later(now, lifeMs), session.idleExpiresAt), session.absoluteExpiresAt);
      const shiftMs = time.shiftMs(session);
      // It differs from token to token, so `toFixed` keeps it out of V8's cache of texts (store/redis/connection/send.ts).
      const exp = secondsOf(end, shiftMs);
      const iat = secondsOf(now, shiftMs);
      const hasFurtherClaims = session.claims !== "{}" || session.authentication !== undefined;
      const payload =
        `{"iss":${iss},"sub":${JSON.stringify(session.subject)},"aud":${JSON.stringify(session.audience)}` +
        `,"exp":${exp.toFixed(0)},"iat":${iat},"jti":"${entropy.text(16)}","sid":"${session.sid}"` +
        `${sessionMembers(session, deviceProven)}${hasFurtherClaims ? furtherClaims(session) : ""}}`;
      return { token: sign(payload), expiresAt: wallMs(exp * 1000) };
    },

    narrow({ sid, sub, exp: latestExp, all }, now, { audience: aud, clientId, claims, act, cnf, endsAt }) {
      const shiftMs = time.shiftMs({ sid });
      const exp = Math.min(latestExp, secondsOf(endsAt, shiftMs));
      const iat = secondsOf(now, shiftMs);
      const names = [...CLAIMS_OF_SESSION, ...claims].filter((name) => Object.hasOwn(all, name));
      const kept = Object.fromEntries(names.map((name) => [name, all[name]]));
      const own = { iss: issuer, sub, aud, exp, iat, jti: entropy.text(16), sid, client_id: clientId, act, cnf };
      return { token: sign(JSON.stringify({ ...kept, ...own })), expiresAt: wallMs(exp * 1000) };
    },

    verify(text) {
      const verified = verifyAuthentic(text);
      if (!verified.ok) return verified;
      const { claims } = verified;
      const now = toWallClock(time.now(claims.sid), time.shiftMs(claims));
      // RFC 7519 §4.1.4: a token is expired on or after `exp`. There is no leeway, because this service is the issuer.
      return now >= wallMs(claims.exp * 1000) ? { ok: false, reason: "expired", claims } : verified;
    },
  };
}

/**
 * Returns the session's own claims, and those of its authentication, as JSON members to append. Reserved names are dropped, except `act`: a
 * session from before it was reserved may have it, and without it would pass for one of its user.
 */
function furtherClaims({ claims, authentication }: Session): string {
  const own: Record<string, unknown> = JSON.parse(claims);
  for (const name of RESERVED_CLAIMS) if (name !== "act") delete own[name];
  // The claims of the authentication come last, because they are newer than those from the creation.
  if (authentication !== undefined) Object.assign(own, authenticationClaims(authentication));
  const members = JSON.stringify(own).slice(1, -1);
  return members === "" ? "" : `,${members}`;
}

/** Returns why a token's header is refused, for the log: it names a key that is not in the ring (any more), or it is malformed. */
function rejectHeader(jws: CompactJws): typeof UNKNOWN_KEY | typeof MALFORMED {
  const header = readHeader(jws);
  const ours = header?.typ === TYP && isSigningAlg(header.alg) && typeof header.kid === "string";
  return ours && Object.keys(header).length === 3 ? UNKNOWN_KEY : MALFORMED;
}

function readClaims(jws: CompactJws, issuer: string): AuthenticAccessToken {
  const all = readPayload(jws);
  if (all === undefined) return MALFORMED;
  const { iss, sub, aud, exp, iat, jti } = all;
  const sid = typeof all.sid === "string" ? parseSessionId(all.sid) : undefined;
  const audiences: readonly unknown[] = Array.isArray(aud) ? aud : [aud];
  const complete =
    typeof iss === "string" &&
    typeof sub === "string" &&
    audiences.length > 0 &&
    audiences.every((each) => typeof each === "string") &&
    Number.isSafeInteger(iat) &&
    typeof exp === "number" &&
    typeof jti === "string" &&
    typeof all.client_id === "string";
  if (!complete || sid === undefined) return MALFORMED;
  if (iss !== issuer) return WRONG_ISSUER;
  return { ok: true, claims: { sid, sub, aud: audiences as readonly string[], exp, jti, all } };
}
