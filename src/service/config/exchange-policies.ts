/** Parses the member `token_exchange` of SESSION_POLICIES_FILE: which clients may exchange access tokens (RFC 8693), and for which ones. */
import { listOf, membersOf, SettingsFileFault, textOf } from "./file-members.ts";
import { DAY_MS, duration, SECOND_MS } from "./values.ts";

export type ExchangePolicy = {
  readonly clientId: string;
  readonly subjectTokenAudiences: readonly string[];
  /** Undefined if the client may ask for those that the exchanged token has. */
  readonly audiences: readonly string[] | undefined;
  readonly claims: readonly string[];
  readonly maxLifetimeMs: number | undefined;
  readonly mayAct: readonly string[];
  readonly mayRebind: boolean;
};

/** @throws SettingsFileFault */
export function parseExchangePolicies(at: string, value: unknown): readonly ExchangePolicy[] {
  const policies = listOf(at, value, parsePolicy);
  const clients = policies.map(({ clientId }) => clientId);
  const twice = clients.findIndex((each, index) => clients.indexOf(each) !== index);
  if (twice !== -1) throw new SettingsFileFault(`${at}[${twice}].client_id: is there twice`);
  return policies;
}

function parsePolicy(at: string, value: unknown): ExchangePolicy {
  const known = [
    "client_id",
    "subject_token_audiences",
    "audiences",
    "claims",
    "max_lifetime",
    "may_act",
    "may_rebind",
  ];
  const entry = membersOf(at, value, known);
  const texts = (name: string) => listOf(`${at}.${name}`, entry[name], required(textOf));
  const { may_rebind: mayRebind = false } = entry;
  if (typeof mayRebind !== "boolean") throw new SettingsFileFault(`${at}.may_rebind: must be true or false`);
  return {
    clientId: required(textOf)(`${at}.client_id`, entry.client_id),
    subjectTokenAudiences: notEmpty(`${at}.subject_token_audiences`, texts("subject_token_audiences")),
    audiences: entry.audiences === undefined ? undefined : notEmpty(`${at}.audiences`, texts("audiences")),
    claims: texts("claims"),
    maxLifetimeMs: durationOf(`${at}.max_lifetime`, entry.max_lifetime),
    mayAct: texts("may_act"),
    mayRebind,
  };
}

const required =
  (parse: (at: string, value: unknown) => string | undefined) =>
  (at: string, value: unknown): string => {
    const text = parse(at, value);
    if (text === undefined) throw new SettingsFileFault(`${at}: is missing`);
    return text;
  };

function notEmpty(at: string, texts: readonly string[]): readonly string[] {
  if (texts.length === 0) throw new SettingsFileFault(`${at}: must have an entry`);
  return texts;
}

/** Returns a duration in ms, of a text such as `60s` or a number of seconds; undefined if the member is absent. */
function durationOf(at: string, value: unknown): number | undefined {
  if (value === undefined) return undefined;
  const parsed = duration(SECOND_MS, DAY_MS)(String(value));
  if (!parsed.ok) throw new SettingsFileFault(`${at}: ${parsed.reason}`);
  return parsed.value;
}
