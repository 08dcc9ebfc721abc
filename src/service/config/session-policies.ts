/** Parses SESSION_POLICIES_FILE: rules for sessions, by application and by kind of client. */
import {
  fault,
  flagOf,
  listOf,
  loadSettingsFile,
  membersOf,
  oneOfTexts,
  parseJson,
  required,
  requireUnique,
  type SettingsFile,
  textOf,
  withoutFile,
} from "./settings-file.ts";
import { DAY_MS, duration, SECOND_MS } from "./values.ts";

const KINDS = ["BROWSER", "MOBILE", "DESKTOP", "CLI", "AGENT", "TV"] as const;
const SCOPES = ["SUBJECT", "CLIENT_ID", "CLIENT_KIND"] as const;
const ACTIONS = ["END_LEAST_RECENTLY_USED", "END_OLDEST", "REFUSE"] as const;
/** The largest limit of a policy. MAX_SESSIONS_PER_SUBJECT may be larger. */
const MAX_LIMIT = 100;

type SessionPolicies = {
  /** The first one that matches a new session counts, and no other. */
  readonly limits: readonly ReturnType<typeof parseLimit>[];
  /** One for each client that may exchange access tokens. */
  readonly tokenExchange: readonly ReturnType<typeof parseExchange>[];
};

export type SessionPoliciesFile = SettingsFile<SessionPolicies>;

export const NO_POLICIES: SessionPoliciesFile = withoutFile({ limits: [], tokenExchange: [] });

type Settings = { readonly oauthEndpoints: boolean };

/** @throws SettingsFileFault if the file cannot be used */
export function loadSessionPolicies(path: string, { oauthEndpoints }: Settings): Promise<SessionPoliciesFile> {
  return loadSettingsFile(path, (text) => {
    const policies = parseSessionPolicies(text);
    if (oauthEndpoints || policies.tokenExchange.length === 0) return policies;
    return fault("token_exchange", "needs OAUTH_ENDPOINTS=on");
  });
}

/**
 * Reads `{"limits":[{"client_id":…,"max_sessions":…,"when_exceeded":…}]}`. Every member but `max_sessions` may be absent; an unknown one is
 * refused. @throws SettingsFileFault
 */
export function parseSessionPolicies(text: string): SessionPolicies {
  const { limits, token_exchange } = membersOf("the file", parseJson(text), ["limits", "token_exchange"]);
  return {
    limits: allReachable("limits", listOf("limits", limits, parseLimit)),
    tokenExchange: exchangePolicies("token_exchange", token_exchange),
  };
}

/** Returns the policies. @throws SettingsFileFault for one that never counts, because one before it matches all its sessions */
function allReachable(at: string, policies: SessionPolicies["limits"]): SessionPolicies["limits"] {
  policies.forEach(({ clientId, clientKind }, index) => {
    const wider = policies.findIndex(
      (each) => (each.clientId ?? clientId) === clientId && (each.clientKind ?? clientKind) === clientKind,
    );
    if (wider < index) fault(`${at}[${index}]`, `never counts, because ${at}[${wider}] matches first`);
  });
  return policies;
}

const lower = <T extends string>(text: T) => text.toLowerCase() as Lowercase<T>;

function parseLimit(at: string, value: unknown) {
  const known = ["client_id", "client_kind", "scope", "max_sessions", "when_exceeded"];
  const entry = membersOf(at, value, known);
  const clientId = textOf(`${at}.client_id`, entry.client_id);
  const kind = oneOfTexts(`${at}.client_kind`, entry.client_kind, KINDS);
  const scope = oneOfTexts(`${at}.scope`, entry.scope, SCOPES);
  if (clientId !== undefined && kind !== undefined && scope === undefined) {
    fault(at, "needs scope, since it has both client_id and client_kind");
  }
  const maxSessions = entry.max_sessions;
  if (typeof maxSessions !== "number" || !Number.isInteger(maxSessions) || maxSessions < 1 || maxSessions > MAX_LIMIT) {
    return fault(`${at}.max_sessions`, `must be a whole number from 1 to ${MAX_LIMIT}`);
  }
  const byCondition = clientId !== undefined ? "CLIENT_ID" : kind !== undefined ? "CLIENT_KIND" : "SUBJECT";
  const action = oneOfTexts(`${at}.when_exceeded`, entry.when_exceeded, ACTIONS) ?? "END_LEAST_RECENTLY_USED";
  const limit = { scope: lower(scope ?? byCondition), maxSessions, whenExceeded: lower(action) };
  return { clientId, clientKind: kind && lower(kind), limit };
}

/** Parses the rules for the clients that exchange access tokens (RFC 8693). */
function exchangePolicies(at: string, value: unknown): SessionPolicies["tokenExchange"] {
  const policies = listOf(at, value, parseExchange);
  requireUnique(
    policies.map(({ clientId }) => clientId),
    (index) => `${at}[${index}].client_id`,
  );
  return policies;
}

function parseExchange(at: string, value: unknown) {
  const lists = ["subject_token_audiences", "audiences", "claims", "may_act"];
  const entry = membersOf(at, value, ["client_id", ...lists, "max_lifetime", "may_rebind"]);
  const texts = (name: string) => listOf(`${at}.${name}`, entry[name], required);
  return {
    clientId: required(`${at}.client_id`, entry.client_id),
    subjectTokenAudiences: notEmpty(`${at}.subject_token_audiences`, texts("subject_token_audiences")),
    // If they are absent, the client may ask for those that the exchanged token has.
    audiences: entry.audiences === undefined ? undefined : notEmpty(`${at}.audiences`, texts("audiences")),
    claims: texts("claims"),
    maxLifetimeMs: durationOf(`${at}.max_lifetime`, entry.max_lifetime),
    mayAct: texts("may_act"),
    mayRebind: flagOf(`${at}.may_rebind`, entry.may_rebind),
  };
}

function notEmpty(at: string, texts: readonly string[]): readonly string[] {
  if (texts.length === 0) return fault(at, "must have an entry");
  return texts;
}

/** Returns a duration in ms, of a text such as `60s` or a number of seconds; undefined if the member is absent. */
function durationOf(at: string, value: unknown): number | undefined {
  if (value === undefined) return undefined;
  const parsed = duration(SECOND_MS, DAY_MS)(String(value));
  if (!parsed.ok) return fault(at, parsed.reason);
  return parsed.value;
}
