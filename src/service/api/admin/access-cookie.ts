import { invalidRequest } from "../../session/errors.ts";
import type { NewSession, Session } from "../../session/model.ts";
import { later } from "../../session/time.ts";
import type { SessionAdminServiceDeps } from "./deps.ts";

/** The size of the largest cookie that browsers keep (RFC 6265bis section 5.6), in bytes. */
const MAX_COOKIE_BYTES = 4_096;
/** If the fields that a caller chooses have fewer bytes together, the access cookie is not too large. */
const SURELY_FITS = 1_000;

export type AccessCookieDeps = Pick<SessionAdminServiceDeps, "cookie" | "accessTokens" | "random" | "store">;
type Wanted = Omit<NewSession, "sid" | "dpopJkt"> & Pick<Session, "version">;

/**
 * Refuses a session whose access cookie would be too large: browsers drop such a cookie, and only print a message. A token is signed to
 * find its size.
 * @throws ServiceError (E400_INVALID_REQUEST) with the size, and what takes most of it
 */
export function requireAccessCookie({ cookie, accessTokens, random, store }: AccessCookieDeps, wanted: Wanted): void {
  if (!cookie.setsAccess || wanted.transport === "token") return;
  const sizes = Object.entries({
    claims: wanted.claims,
    audiences: JSON.stringify(wanted.audience),
    subject: wanted.subject,
    client_id: wanted.clientId,
    acr: wanted.authentication?.contextClass ?? "",
    amr: JSON.stringify(wanted.authentication?.methods ?? []),
  }).map(([name, text]) => ({ name, bytes: Buffer.byteLength(text) }));
  if (sizes.reduce((sum, { bytes }) => sum + bytes, 0) < SURELY_FITS) return;
  const sid = random.sessionId(wanted.subject);
  const now = store.now(sid);
  const end = later(now, wanted.idleTimeoutMs);
  const session = { ...wanted, sid, createdAt: now, lastRefreshedAt: now, idleExpiresAt: end, absoluteExpiresAt: end };
  const bytes = cookie.accessBytes(accessTokens.issue(session, now));
  if (bytes <= MAX_COOKIE_BYTES) return;
  const [largest = { name: "", bytes: 0 }] = sizes.sort((a, b) => b.bytes - a.bytes);
  const found = `the access cookie would have ${bytes} bytes (ACCESS_COOKIE), and browsers drop more than ${MAX_COOKIE_BYTES}`;
  throw invalidRequest(largest.name, `${found}; the token contains ${largest.bytes} bytes of ${largest.name}`);
}
