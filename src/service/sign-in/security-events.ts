/**
 * Accepts security events of transmitters (SSF 1.0): a session was revoked, a credential has changed, an account was disabled. The sessions
 * that came from the login end. Events are pushed to this service (RFC 8935), or polled by it (security-polls.ts).
 */
import type { HttpRequest } from "../../platform/listener/handler.ts";
import { readBody } from "../../platform/listener/json.ts";
import { isSafeUrl, type ProviderSettings, type Transmitter } from "../config/providers.ts";
import type { EndedLogin } from "./backchannel-logout.ts";
import { boundedFetch } from "./bounded-fetch.ts";
import { keepForAnHour } from "./keep-for-an-hour.ts";
import { createReceiver, type Received, type ReceiverDeps, UNAVAILABLE } from "./receiver.ts";
import { CLOCK_SKEW_SECONDS, createTokenVerifier, MAX_TOKEN_LENGTH, partiesOf } from "./signed-token.ts";
import { isShort } from "./user.ts";

export const SECURITY_EVENTS = "/v1/auth/security-events";

type Deps = {
  readonly providers: () => readonly ProviderSettings[];
  /**
   * Ends the sessions of a login, and returns how many. Rejects if some may still be live.
   * @param request by which the transmitter says so; undefined if the event was polled
   */
  readonly end: (login: EndedLogin, request: HttpRequest | undefined) => Promise<number>;
  readonly log: Record<"info" | "warn", (fields: object, message: string) => void>;
};

/** `err` is a code of RFC 8935 section 2.4. An event that is `unavailable` may count later. */
type Accepted =
  | { readonly ok: true }
  | { readonly ok: false; readonly reason: "unavailable" }
  | { readonly ok: false; readonly reason: "invalid"; readonly err: string };

/** Takes an event into account. Rejects if sessions may still be live. */
export type AcceptEvent = (token: string, request: HttpRequest | undefined) => Promise<Accepted>;

type Members = Readonly<Record<string, unknown>>;

/** How old an event may be, in seconds: transmitters repeat what they could not deliver. */
const MAX_AGE_SECONDS = 30 * 86_400;
const TIMEOUT_MS = 5_000;
/** The type that every security event token of a transmitter has (SSF 1.0, explicit typing), so that no other token passes for one. */
const TYPE = "secevent+jwt";

const CAEP = "https://schemas.openid.net/secevent/caep/event-type/";
const RISC = "https://schemas.openid.net/secevent/risc/event-type/";
/** The events that end sessions: the session that the subject names, or otherwise all sessions of the user. */
const OF_SESSIONS: ReadonlySet<string> = new Set([`${CAEP}session-revoked`]);
/** The events that end all sessions of the user. */
const OF_USERS: ReadonlySet<string> = new Set([
  `${CAEP}credential-change`,
  ...["account-disabled", "account-purged", "sessions-revoked"].map((name) => RISC + name),
]);

export function createAcceptEvent(deps: Deps): AcceptEvent {
  const verifierOf = createVerifiers();

  return async (text, request) => {
    const address = partiesOf(text);
    if (address === undefined) return refuse(deps, undefined, "invalid_request", "no_token");
    const named = deps.providers().filter(({ securityEvents }) => securityEvents?.issuer === address.issuer);
    if (named.length === 0) return refuse(deps, undefined, "invalid_issuer", "no_transmitter");
    const provider = named.find(({ securityEvents }) => address.audience.includes(securityEvents?.audience ?? ""));
    if (provider?.securityEvents === undefined) return refuse(deps, named[0], "invalid_audience", "wrong_audience");
    const verified = await verifierOf(provider.securityEvents)(text);
    if (!verified.ok) {
      return verified.reason === "unavailable" ? verified : refuse(deps, provider, "invalid_request", verified.code);
    }
    const { events, sub_id, iat } = verified.payload;
    for (const [type, event] of Object.entries(isObject(events) ? events : {})) {
      const login = isObject(event) ? loginOf(type, event, sub_id, provider) : undefined;
      // The event says when its cause happened, which is not later than the token.
      const time = isObject(event) && typeof event.event_timestamp === "number" ? event.event_timestamp : iat;
      const createdUntilMs = (Math.min(time, iat) + CLOCK_SKEW_SECONDS) * 1000;
      const count = login && (await deps.end({ issuer: provider.issuer, ...login, createdUntilMs }, request));
      const name = OF_SESSIONS.has(type) || OF_USERS.has(type) ? type.slice(type.lastIndexOf("/") + 1) : "other";
      deps.log.info({ event: "security_event", provider: provider.name, type: name, count }, "security_event");
    }
    return { ok: true };
  };
}

export function createSecurityEvents(accept: AcceptEvent, deps: Deps & ReceiverDeps) {
  async function receive(request: HttpRequest): Promise<Received> {
    const text = await readBody(request, MAX_TOKEN_LENGTH);
    const [mediaType = ""] = (request.headers["content-type"] ?? "").split(";");
    const isEvent = mediaType.trim().toLowerCase() === "application/secevent+jwt" && text !== undefined;
    const accepted = isEvent ? await accept(text, request) : refuse(deps, undefined, "invalid_request", "no_token");
    if (accepted.ok) return { status: 202 };
    if (accepted.reason === "unavailable") return UNAVAILABLE;
    return { status: 400, error: { err: accepted.err, description: "refused" } };
  }

  return createReceiver(receive, deps);
}

function refuse({ log }: Deps, provider: ProviderSettings | undefined, err: string, reason: string) {
  log.warn({ event: "security_event_refused", provider: provider?.name, reason }, "security_event_refused");
  return { ok: false, reason: "invalid", err } as const;
}

type Verify = ReturnType<typeof createTokenVerifier>;

/** Returns a function that returns the verifier of a transmitter, whose keys its metadata name (SSF 1.0 section 6). */
function createVerifiers() {
  // Settings are new objects after a change of the file, so nothing of the earlier ones stays in use.
  const known = new WeakMap<Transmitter, () => Promise<Verify>>();
  return (transmitter: Transmitter): Verify =>
    async (text) => {
      const verifier = known.get(transmitter) ?? keepForAnHour(() => verifierOf(transmitter));
      known.set(transmitter, verifier);
      const verify = await verifier().catch(() => undefined);
      return verify === undefined ? { ok: false, reason: "unavailable" } : verify(text);
    };
}

/** Rejects if the transmitter does not respond, or its metadata name no keys. */
async function verifierOf({ issuer, audience }: Transmitter): Promise<Verify> {
  const { origin, pathname } = new URL(issuer);
  const url = `${origin}/.well-known/ssf-configuration${pathname === "/" ? "" : pathname}`;
  const init = {
    method: "GET",
    headers: {},
    redirect: "manual",
    body: null,
    signal: AbortSignal.timeout(TIMEOUT_MS),
  } as const;
  const response = await boundedFetch(url, init);
  const metadata: unknown = await response.json();
  const keys = response.ok && isObject(metadata) && metadata.issuer === issuer ? metadata.jwks_uri : undefined;
  if (typeof keys !== "string" || !isSafeUrl(keys)) throw new Error("the metadata of the transmitter cannot be used");
  return createTokenVerifier(issuer, audience, keys, MAX_AGE_SECONDS, TYPE);
}

/** Returns the login that an event ends; undefined if it ends none, or names its subject in a way that is not known. */
function loginOf(type: string, event: Members, subject: unknown, { issuer }: ProviderSettings) {
  if (!OF_SESSIONS.has(type) && !OF_USERS.has(type)) return undefined;
  // A new credential takes nothing away.
  if (event.change_type === "create" || !isObject(subject)) return undefined;
  const isComplex = subject.format === "complex";
  const session = OF_SESSIONS.has(type) ? (isComplex ? subject.session : subject) : undefined;
  const sessionId = isObject(session) && session.format === "opaque" ? session.id : undefined;
  if (isShort(sessionId)) return { sessionId };
  const user = isComplex ? subject.user : subject;
  return isObject(user) && user.format === "iss_sub" && user.iss === issuer && isShort(user.sub)
    ? { subject: user.sub }
    : undefined;
}

const isObject = (value: unknown): value is Members =>
  typeof value === "object" && value !== null && !Array.isArray(value);
