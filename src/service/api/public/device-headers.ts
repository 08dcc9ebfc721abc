/** The header fields of device binding (DBSC, "HTTP header fields"), which are structured fields (RFC 9651). */
import { type Item, parseItem, parseList, serializeItem, serializeList, Token } from "structured-headers";
import type { SessionId } from "../../session/model.ts";

/** Response header: offers the registration of a key. */
export const REGISTRATION = "secure-session-registration";
/** Response header: the challenge that the next proof must sign. */
export const CHALLENGE = "secure-session-challenge";
/** Request header: a proof. */
export const PROOF = "secure-session-response";
/** Request header: the session whose device cookie the browser renews. Scripts cannot set it. */
export const SESSION_ID = "sec-secure-session-id";
/** Request header: a session for which the browser could not renew the device cookie earlier. */
export const SKIPPED = "secure-session-skipped";

/** A longer value is not valid for any of these headers. */
const MAX_LENGTH = 1024;

const ALGORITHMS: Item[] = [
  [new Token("ES256"), new Map()],
  [new Token("RS256"), new Map()],
];

/** The path of RegisterDevice, which is also in proto/auth/v1/session.proto. */
const REGISTER_PATH = "/v1/auth/device";
const OFFER = serializeList([[ALGORITHMS, new Map(Object.entries({ path: REGISTER_PATH, challenge: "" }))]]);
/** The constant part of the registration header, up to the challenge: nearly every refresh of an unbound session has this header. */
const OFFER_START = OFFER.slice(0, -1);

export function registrationValue(challenge: string): string {
  return `${OFFER_START}${challenge}"`;
}

export function challengeValue(challenge: string, sid: SessionId): string {
  return serializeItem([challenge, new Map([["id", sid]])]);
}

/** Returns the session id in a `Sec-Secure-Session-Id`; undefined if the header is absent, malformed or sent twice. */
export function readSessionId(value: string | null): string | undefined {
  if (value === null || value.length > MAX_LENGTH) return undefined;
  try {
    const [id] = parseItem(value);
    return textOf(id);
  } catch {
    return undefined;
  }
}

const NONE: readonly string[] = [];

/**
 * Returns the ids of the sessions whose device cookies the browser could not renew; none if the header is absent or malformed. The header
 * lists reasons, each with a session id as its parameter. Unknown reasons are accepted, because future browsers may report new ones.
 */
export function readSkipped(value: string | null): readonly string[] {
  if (value === null || value.length > MAX_LENGTH) return NONE;
  try {
    return parseList(value).flatMap(([reason, parameters]) =>
      reason instanceof Token ? (textOf(parameters.get("session_identifier")) ?? []) : [],
    );
  } catch {
    return NONE;
  }
}

/** Returns the text of a session id. Some browsers send it as a string, others as a token (RFC 9651 section 3.3). */
function textOf(value: unknown): string | undefined {
  if (value instanceof Token) return value.toString();
  return typeof value === "string" ? value : undefined;
}
