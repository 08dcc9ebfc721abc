/** The header fields of device binding (DBSC, "HTTP header fields"), which are structured fields (RFC 9651). */
import { type Item, parseItem, parseList, serializeItem, serializeList, Token } from "structured-headers";
import type { SessionId } from "../../session/model.ts";

/** On a response: the browser may register a key. */
export const REGISTRATION = "secure-session-registration";
/** On a response: what the next proof signs. */
export const CHALLENGE = "secure-session-challenge";
/** On a request: a proof. */
export const PROOF = "secure-session-response";
/** On a request: the session that a browser renews. Scripts cannot set it. */
export const SESSION_ID = "sec-secure-session-id";
/** On a request: a session that the browser could not renew before. */
export const SKIPPED = "secure-session-skipped";

/** Longer values are not of these headers. */
const MAX_LENGTH = 1024;

/** Why a browser could not renew. Browsers may come to know others. */
type SkippedRenewal = {
  readonly reason: string;
  /** Absent where the browser does not say it. */
  readonly sessionId: string | undefined;
};

const ALGORITHMS: Item[] = [
  [new Token("ES256"), new Map()],
  [new Token("RS256"), new Map()],
];

/** The value of `Secure-Session-Registration`. @param path where to register */
export function registrationValue(path: string, challenge: string): string {
  return `${registrationOf(path)}${challenge}"`;
}

/** By path: all of the value before the challenge, which is base64url and comes with nearly every refresh of an unbound session. */
const registrations = new Map<string, string>();

function registrationOf(path: string): string {
  let start = registrations.get(path);
  if (start === undefined) {
    start = serializeList([[ALGORITHMS, new Map(Object.entries({ path, challenge: "" }))]]).slice(0, -1);
    registrations.set(path, start);
  }
  return start;
}

/** The value of `Secure-Session-Challenge`. */
export function challengeValue(challenge: string, sid: SessionId): string {
  return serializeItem([challenge, new Map([["id", sid]])]);
}

/** The session id in a `Sec-Secure-Session-Id`; undefined where it is absent, malformed or sent twice. */
export function readSessionId(value: string | null): string | undefined {
  if (value === null || value.length > MAX_LENGTH) return undefined;
  try {
    const [id] = parseItem(value);
    return textOf(id);
  } catch {
    return undefined;
  }
}

/** The renewals that a `Secure-Session-Skipped` reports; none where it is absent or malformed. */
export function readSkipped(value: string | null): readonly SkippedRenewal[] {
  if (value === null || value.length > MAX_LENGTH) return [];
  try {
    return parseList(value).flatMap(([reason, parameters]) => {
      if (!(reason instanceof Token)) return [];
      return [{ reason: reason.toString(), sessionId: textOf(parameters.get("session_identifier")) }];
    });
  } catch {
    return [];
  }
}

/** Browsers have sent strings and, where the text allows it, bare tokens. */
function textOf(value: unknown): string | undefined {
  if (value instanceof Token) return value.toString();
  return typeof value === "string" ? value : undefined;
}
