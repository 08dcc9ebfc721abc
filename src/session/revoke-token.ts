import type { Requester } from "./audit.ts";
import type { KeyProof } from "./device-key.ts";
import type { Refused } from "./errors.ts";
import { authenticate, logout, logoutByCookie } from "./owner.ts";
import type { RefreshTokens } from "./ports.ts";

type Deps = Parameters<typeof logout>[0] & Parameters<typeof logoutByCookie>[0] & Parameters<typeof authenticate>[0];

/**
 * Ends the session of a refresh token, of any generation, or of an access token (RFC 7009). A session that has ended already is refused
 * for an access token, and is no error for a refresh token. A token that is bound to a key needs its proof.
 *
 * @throws StoreUnavailable
 */
export async function revokeToken(
  deps: Deps & { readonly refreshTokens: Pick<RefreshTokens, "parse"> },
  text: string,
  requester: Requester,
  proof?: KeyProof,
): Promise<{ readonly ok: true } | Refused> {
  const parsed = deps.refreshTokens.parse(text);
  if (parsed.ok) return logoutByCookie(deps, [parsed.token], requester, proof);
  // An access token is no refresh token of any key.
  if (parsed.reason !== "malformed") return parsed;
  const authenticated = authenticate(deps, { token: text, proof });
  if (!authenticated.ok) return authenticated;
  return logout(deps, { ok: true, caller: authenticated.claims, isExpired: false, byCookie: [] }, requester);
}
