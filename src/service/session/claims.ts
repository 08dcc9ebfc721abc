/** The claims that the service sets in access tokens. CONTRIBUTING.md has the steps that add one. */
import { isProofKey, thumbprintOf } from "./devices/key.ts";
import type { Authentication, Session } from "./model.ts";
import { secondsOf } from "./time.ts";

type Claim = {
  /**
   * The field of a session that is the claim's value, or a function that returns it; undefined if the session's tokens do not have the
   * claim.
   */
  readonly of:
    | "createdAt"
    | "version"
    | "clientId"
    | ((
        session: Session,
        deviceProven: boolean,
      ) => string | number | boolean | Readonly<Record<string, string>> | undefined);
  /** The field without which no session has the claim. Absent: every session may have it. */
  readonly needs?: "device" | "actor";
  /** Whether the introspection of a refresh token returns the claim, too. */
  readonly isIntrospected: boolean;
};

/** Claims that follow from the session. Each token also has the claims of RFC 9068 section 2.2. */
export const SESSION_CLAIMS = {
  /** When the session was created, in the store's time. Verifiers compare it with the time of a logout of everyone. */
  sct: { of: "createdAt", isIntrospected: false },
  /** The version of the session; absent until its first update. Verifiers refuse tokens of a version that is stale. */
  sv: { of: "version", isIntrospected: false },
  client_id: { of: "clientId", isIntrospected: true },
  /** The client has proven possession of the session's device key. A DPoP key does not count: it may have been copied. */
  device_bound: {
    of: ({ device }, deviceProven) => (deviceProven && device !== undefined && !isProofKey(device)) || undefined,
    needs: "device",
    isIntrospected: true,
  },
  /** The key that the client proves with each request (RFC 9449 section 6.1). */
  cnf: {
    of: ({ device }) => (device !== undefined && isProofKey(device) ? { jkt: thumbprintOf(device) } : undefined),
    needs: "device",
    isIntrospected: true,
  },
  /** Who uses the session in place of its subject (RFC 8693 section 4.1). */
  act: { of: ({ actor }) => actor && { sub: actor.subject }, needs: "actor", isIntrospected: true },
} as const satisfies Readonly<Record<string, Claim>>;

const CLAIMS: readonly (readonly [name: string, Claim])[] = Object.entries(SESSION_CLAIMS);

/** Claims that only the service sets (RFC 9068 section 2.2, RFC 7800): the claims of a session may not have these names. */
export const RESERVED_CLAIMS: readonly string[] = [
  ...["iss", "sub", "aud", "exp", "nbf", "iat", "jti", "sid"],
  ...Object.keys(SESSION_CLAIMS),
];

/** Claims that are set only by an authentication: at the creation of the session, or at a later, stronger authentication (step-up). */
export const AUTHENTICATION_CLAIMS = ["auth_time", "amr", "acr"] as const;

/** For each claim, the text before its value in a JSON object, with the comma that separates the claim from the previous member. */
const MEMBERS = CLAIMS.map(([name, { of, needs }]) => ({ start: `,"${name}":`, of, needs }));

/** Returns the members that SESSION_CLAIMS adds to the text of a JSON object. It runs in every refresh. */
export function sessionMembers(session: Session, deviceProven: boolean): string {
  let text = "";
  for (const { start, of, needs } of MEMBERS) {
    if (needs !== undefined && session[needs] === undefined) continue;
    const value = typeof of === "string" ? session[of] : of(session, deviceProven);
    if (value !== undefined) text += start + (typeof value === "number" ? value : JSON.stringify(value));
  }
  return text;
}

/** Returns the claims of SESSION_CLAIMS that the introspection of a refresh token returns. */
export function introspectedClaims(session: Session, deviceBound: boolean): Readonly<Record<string, unknown>> {
  const introspected = CLAIMS.filter(([, { isIntrospected }]) => isIntrospected);
  const values = introspected.map(
    ([name, { of }]) => [name, typeof of === "string" ? session[of] : of(session, deviceBound)] as const,
  );
  return Object.fromEntries(values.filter(([, value]) => value !== undefined));
}

/** Returns the claims of an authentication (OpenID Connect Core section 2). */
export function authenticationClaims({ time, methods, contextClass }: Authentication) {
  return {
    ...(time > 0 && { auth_time: secondsOf(time) }),
    ...(methods.length > 0 && { amr: methods }),
    ...(contextClass !== "" && { acr: contextClass }),
  };
}
