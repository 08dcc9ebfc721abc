/** What a browser presents to the service for a refresh: the refresh token, and cookies of the device that its session is bound to. */
import { valuesForService } from "./cookies.ts";

/** The suffixes that make the names of the device cookies from the name of the refresh token's cookie. */
const DEVICE = "_device";
const MARK = "_device_mark";

/** Returns what the headers of a request present, or undefined if there is no refresh token. */
export function presentedBy(headers: Pick<Headers, "get">, refreshCookie: string) {
  const valuesOf = (name: string) => valuesForService(headers.get("cookie"), name);
  const tokens = valuesOf(refreshCookie);
  if (tokens.length === 0) return undefined;
  const [proofs, marks] = [valuesOf(refreshCookie + DEVICE), valuesOf(refreshCookie + MARK)];
  return {
    /** A text of everything in the request that the service's decision depends on. Requests with equal texts may share one refresh. */
    id: [tokens, proofs, marks, [headers.get("secure-session-skipped")]].map((part) => part.join(" ")).join(";"),
    /**
     * Whether the session may be bound to this device, but the device cookie, which proves that, has expired. The service then refuses the
     * refresh as if the session had ended. Browsers renew the device cookie when they call the service, but not when they load a page.
     */
    mustRenew: proofs.length === 0 && marks.length > 0,
  };
}
