/** Loads SESSION_POLICIES_FILE. If the file changes while the service runs, the new policies are used. */
import { type Followed, loadFollowed } from "../../platform/files/follow.ts";
import { readProtected } from "../../platform/files/protection.ts";
import { SessionPoliciesFault } from "./policy-members.ts";
import { parseSessionPolicies, type SessionPolicies } from "./session-policies.ts";

export { SessionPoliciesFault } from "./policy-members.ts";

export type SessionPoliciesFile = Followed<SessionPolicies, SessionPoliciesFault>;

/** The policies of a service without a file. */
export const NO_POLICIES: SessionPoliciesFile = { current: { limits: [], tokenExchange: [] }, watch: () => () => {} };

type Settings = { readonly oauthEndpoints: boolean };

/** @throws SessionPoliciesFault if the file cannot be used */
export function loadSessionPolicies(path: string, settings: Settings): Promise<SessionPoliciesFile> {
  return loadFollowed({
    path,
    read: () => readPolicies(path),
    parse: (text) => parseAt(path, text, settings),
    faultOf: (error) => (error instanceof SessionPoliciesFault ? error : faultAt(path, "cannot be used")),
  });
}

/** Other users may read the file, which has no secrets, but not write it. */
async function readPolicies(path: string): Promise<string> {
  const read = await readProtected(path, { forbids: "write", mode: 0o644 });
  if (!read.ok) throw faultAt(path, read.fault);
  return read.text;
}

function parseAt(path: string, text: string, { oauthEndpoints }: Settings): SessionPolicies {
  try {
    const policies = parseSessionPolicies(text);
    if (oauthEndpoints || policies.tokenExchange.length === 0) return policies;
    throw new SessionPoliciesFault("token_exchange: needs OAUTH_ENDPOINTS=on");
  } catch (error) {
    throw error instanceof SessionPoliciesFault ? faultAt(path, error.message) : error;
  }
}

const faultAt = (path: string, what: string) => new SessionPoliciesFault(`${path}: ${what}`);
