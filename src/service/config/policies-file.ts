/** Loads SESSION_POLICIES_FILE. */
import { SettingsFileFault } from "./file-members.ts";
import { parseSessionPolicies, type SessionPolicies } from "./session-policies.ts";
import { loadSettingsFile, type SettingsFile, withoutFile } from "./settings-file.ts";

export type SessionPoliciesFile = SettingsFile<SessionPolicies>;

/** The policies of a service without a file. */
export const NO_POLICIES: SessionPoliciesFile = withoutFile({ limits: [], tokenExchange: [] });

type Settings = { readonly oauthEndpoints: boolean };

/** @throws SettingsFileFault if the file cannot be used */
export function loadSessionPolicies(path: string, { oauthEndpoints }: Settings): Promise<SessionPoliciesFile> {
  return loadSettingsFile(path, (text) => {
    const policies = parseSessionPolicies(text);
    if (oauthEndpoints || policies.tokenExchange.length === 0) return policies;
    throw new SettingsFileFault("token_exchange: needs OAUTH_ENDPOINTS=on");
  });
}
