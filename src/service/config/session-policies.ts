/** Parses SESSION_POLICIES_FILE: rules for sessions, by application and by kind of client. */
import { type ExchangePolicy, parseExchangePolicies } from "./exchange-policies.ts";
import { listOf, membersOf, oneOfTexts, parseJson, SettingsFileFault, textOf } from "./file-members.ts";

const KINDS = ["BROWSER", "MOBILE", "DESKTOP", "CLI", "AGENT", "TV"] as const;
const SCOPES = ["SUBJECT", "CLIENT_ID", "CLIENT_KIND"] as const;
const ACTIONS = ["END_LEAST_RECENTLY_USED", "END_OLDEST", "REFUSE"] as const;
/** The largest limit of a policy. MAX_SESSIONS_PER_SUBJECT may be larger. */
const MAX_LIMIT = 100;

/** How many sessions of a subject are allowed, and for which new sessions that counts: all, or those that match a condition. */
type LimitPolicy = {
  readonly clientId: string | undefined;
  readonly clientKind: Lowercase<(typeof KINDS)[number]> | undefined;
  readonly limit: {
    readonly scope: Lowercase<(typeof SCOPES)[number]>;
    readonly maxSessions: number;
    readonly whenExceeded: Lowercase<(typeof ACTIONS)[number]>;
  };
};

export type SessionPolicies = {
  /** The first one that matches a new session counts, and no other. */
  readonly limits: readonly LimitPolicy[];
  /** One for each client that may exchange access tokens. */
  readonly tokenExchange: readonly ExchangePolicy[];
};

/**
 * Reads `{"limits":[{"client_id":…,"max_sessions":…,"when_exceeded":…}]}`. Every member but `max_sessions` may be absent; an unknown one is
 * refused. @throws SettingsFileFault
 */
export function parseSessionPolicies(text: string): SessionPolicies {
  const { limits, token_exchange } = membersOf("the file", parseJson(text), ["limits", "token_exchange"]);
  return {
    limits: allReachable("limits", listOf("limits", limits, parseLimit)),
    tokenExchange: parseExchangePolicies("token_exchange", token_exchange),
  };
}

/** Returns the policies. @throws SettingsFileFault for one that never counts, because one before it matches all its sessions */
function allReachable(at: string, policies: readonly LimitPolicy[]): readonly LimitPolicy[] {
  policies.forEach(({ clientId, clientKind }, index) => {
    const wider = policies.findIndex(
      (each) => (each.clientId ?? clientId) === clientId && (each.clientKind ?? clientKind) === clientKind,
    );
    if (wider < index)
      throw new SettingsFileFault(`${at}[${index}]: never counts, because ${at}[${wider}] matches first`);
  });
  return policies;
}

const lower = <T extends string>(text: T) => text.toLowerCase() as Lowercase<T>;

function parseLimit(at: string, value: unknown): LimitPolicy {
  const known = ["client_id", "client_kind", "scope", "max_sessions", "when_exceeded"];
  const entry = membersOf(at, value, known);
  const clientId = textOf(`${at}.client_id`, entry.client_id);
  const kind = oneOfTexts(`${at}.client_kind`, entry.client_kind, KINDS);
  const scope = oneOfTexts(`${at}.scope`, entry.scope, SCOPES);
  if (clientId !== undefined && kind !== undefined && scope === undefined) {
    throw new SettingsFileFault(`${at}: needs scope, since it has both client_id and client_kind`);
  }
  const maxSessions = entry.max_sessions;
  if (typeof maxSessions !== "number" || !Number.isInteger(maxSessions) || maxSessions < 1 || maxSessions > MAX_LIMIT) {
    throw new SettingsFileFault(`${at}.max_sessions: must be a whole number from 1 to ${MAX_LIMIT}`);
  }
  const byCondition = clientId !== undefined ? "CLIENT_ID" : kind !== undefined ? "CLIENT_KIND" : "SUBJECT";
  const action = oneOfTexts(`${at}.when_exceeded`, entry.when_exceeded, ACTIONS) ?? "END_LEAST_RECENTLY_USED";
  const limit = { scope: lower(scope ?? byCondition), maxSessions, whenExceeded: lower(action) };
  return { clientId, clientKind: kind && lower(kind), limit };
}
