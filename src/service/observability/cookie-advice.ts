/**
 * Reports that browsers refresh without the cookie after a login. Each such refresh is a 401 that the log does not have, because a visitor
 * who is not signed in causes the same. The two differ in what happens beside it: here sessions are created, and none is refreshed.
 */
import type { Audit } from "../session/audit.ts";
import type { Logger } from "./logger.ts";

/** The time in ms in which sessions must have been created, and none refreshed. There is at most one line in this time. */
const WINDOW_MS = 60_000;

const CAUSES =
  "a fetch without credentials: include; a login page that does not pass Set-Cookie on; a path or a host that the cookie is not for";

/** Wraps an audit. Each event costs one comparison; the rest runs at a refresh without a cookie. @param clock returns milliseconds */
export function withCookieAdvice(
  audit: Audit,
  cookie: { readonly name: string; readonly path: string | undefined; readonly domain: string | undefined },
  log: Pick<Logger, "warn">,
  clock: () => number = () => performance.now(),
): Audit {
  const { name, path = name.startsWith("__Host-") ? "/" : "/v1/auth", domain } = cookie;
  const counts = { created: 0, renewed: 0 };
  let before = { ...counts };
  let sinceMs = Number.NEGATIVE_INFINITY;
  let advisedMs = Number.NEGATIVE_INFINITY;

  function advise(): void {
    const isTypical = counts.created > before.created && counts.renewed === before.renewed;
    const nowMs = clock();
    if (nowMs - sinceMs >= WINDOW_MS) {
      sinceMs = nowMs;
      before = { ...counts };
    }
    if (!isTypical || nowMs - advisedMs < WINDOW_MS) return;
    advisedMs = nowMs;
    const text = "refreshes come without the cookie, although sessions are created";
    // The field is not called `cookie`, because the log redacts fields of that name.
    log.warn({ event: "refresh_without_cookie", cookieName: name, path, domain, causes: CAUSES }, text);
  }

  return (event, requester) => {
    if (event.event === "session_renewed") counts.renewed++;
    else if (event.event === "session_created") counts.created++;
    else if (event.event === "authn_failed" && event.reason === "absent" && event.operation === "Refresh") advise();
    audit(event, requester);
  };
}
