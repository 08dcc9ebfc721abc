import type { Requester } from "../audit.ts";
import { authenticate } from "../authenticate.ts";
import type { KeyProof } from "../devices/key.ts";
import type { Refused } from "../errors.ts";
import type { RefreshTokens } from "../ports.ts";
import { logout, logoutByRefreshTokens } from "./logout.ts";

type Deps = Parameters<typeof logout>[0] &
  Parameters<typeof logoutByRefreshTokens>[0] &
  Parameters<typeof authenticate>[0];

/**
 * Ends the session of an access token, or of a refresh token of any generation (RFC 7009). If the session has already ended, only an
 * access token is refused. A token that is bound to a key needs a proof of that key. @throws StoreUnavailable
 */
export async function revokeToken(
  deps: Deps & { readonly refreshTokens: Pick<RefreshTokens, "parse"> },
  text: string,
  requester: Requester,
  proof?: KeyProof,
): Promise<{ readonly ok: true } | Refused> {
  const parsed = deps.refreshTokens.parse(text);
  if (parsed.ok) return logoutByRefreshTokens(deps, [parsed.token], requester, proof);
  // `malformed` means that the text is no refresh token, so it may be an access token. Any other reason refuses a refresh token.
  if (parsed.reason !== "malformed") return parsed;
  const authenticated = authenticate(deps, { token: text, proof });
  if (!authenticated.ok) return authenticated;
  return logout(deps, { ok: true, caller: authenticated.claims, isExpired: false, byCookie: [] }, requester);
}
