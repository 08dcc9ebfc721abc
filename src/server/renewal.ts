/** Refreshes a session, and reads the user of the new token. */
import type { createRefresher, Refreshed } from "./refresh.ts";
import type { Report } from "./report.ts";
import { type createUserReader, UNAVAILABLE, type User } from "./user.ts";

type RenewalDeps = {
  readonly refresh: ReturnType<typeof createRefresher>;
  readonly userOf: ReturnType<typeof createUserReader>["userOf"];
  /** Whether the service accepts the same credentials only once (`REUSE_INTERVAL` 0). */
  readonly isStrict: boolean;
  readonly report: Report;
};

type Renewal = { readonly refreshed: Refreshed; readonly isFirst: boolean; readonly renewed: User };

export function createRenewal({ refresh, userOf, isStrict, report }: RenewalDeps) {
  /** @param stale the access token of a refresh from before the last change of the session */
  return async function renew(presented: string, headers: Headers, stale?: string): Promise<Renewal> {
    const { refreshed, isFirst } = await refresh(presented, headers, stale);
    if (refreshed.state !== "active") return { refreshed, isFirst, renewed: UNAVAILABLE };
    let refused: string | undefined;
    // The service has just issued this token. If the user has not signed out since, a verifier that refuses it is configured wrongly.
    const renewed = await userOf(refreshed.accessToken, (reason) => {
      refused = reason;
      return reason === "revoked";
    });
    // The session has changed during the refresh, or after a refresh that other requests share.
    if (refused === "stale" && stale === undefined && !isStrict)
      return renew(presented, headers, refreshed.accessToken);
    if (refused !== undefined && refused !== "revoked" && isFirst) report({ event: "token_refused", reason: refused });
    return { refreshed, isFirst, renewed };
  };
}
