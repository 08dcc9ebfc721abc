/** Loads CONSOLE_PROVIDER_FILE: the OpenID Connect provider by which operators sign in to the console, and what they may do there. */
import { CLIENT_MEMBERS, clientOf, type ProviderClient, type Requirements, requirementsOf } from "./providers.ts";
import { fault, listOf, loadSettingsFile, membersOf, parseJson, type SettingsFile, textOf } from "./settings-file.ts";

/** The scopes that the console has a use for. An operator can have no others. */
const CONSOLE_SCOPES = [
  "sessions:read",
  "sessions:revoke",
  "subjects:export",
  "subjects:forget",
  "metrics",
  "signals:read",
  "signals:manage",
] as const;

type ConsoleScope = (typeof CONSOLE_SCOPES)[number];

type Grant = { readonly require: Requirements; readonly scopes: readonly ConsoleScope[] };

export type ConsoleProvider = ProviderClient & {
  /** The path of the claim that names an operator in the audit. */
  readonly operatorName: string;
  /** An operator has the scopes of every grant whose requirements the operator's claims satisfy. */
  readonly grants: readonly Grant[];
};

export type ConsoleProviderFile = SettingsFile<ConsoleProvider>;

/** @throws SettingsFileFault if the file cannot be used */
export function loadConsoleProvider(path: string): Promise<ConsoleProviderFile> {
  return loadSettingsFile(path, parseConsoleProvider);
}

const ROOT = "the file";

/** @throws SettingsFileFault */
export function parseConsoleProvider(text: string): ConsoleProvider {
  const entry = membersOf(ROOT, parseJson(text), [...CLIENT_MEMBERS, "operator_name", "grants"]);
  const grants = listOf("grants", entry.grants, grantOf);
  if (grants.length === 0) fault("grants", "is empty, so nobody could sign in");
  return { ...clientOf(ROOT, entry), operatorName: textOf("operator_name", entry.operator_name) ?? "sub", grants };
}

function grantOf(at: string, value: unknown): Grant {
  const entry = membersOf(at, value, ["require", "scopes"]);
  const require = requirementsOf(`${at}.require`, entry.require);
  // Without a requirement, every user of the provider would be an operator.
  if (Object.keys(require).length === 0) fault(`${at}.require`, "is empty");
  const scopes = listOf(`${at}.scopes`, entry.scopes, scopeOf);
  if (scopes.length === 0) fault(`${at}.scopes`, "is empty");
  return { require, scopes };
}

function scopeOf(at: string, value: unknown): ConsoleScope {
  return CONSOLE_SCOPES.find((known) => known === value) ?? fault(at, `must be one of ${CONSOLE_SCOPES.join(", ")}`);
}
