/** The cookies of device binding. By them the service sees whether a refresh comes from the device that a session is bound to. */
import { distinctValues } from "./cookies.ts";

/** The names of the cookies, after the name of the refresh token's cookie. */
const DEVICE = "_device";
const MARK = "_device_mark";

/** Returns what the cookies of a browser say about its device. */
export function deviceOf(headers: Pick<Headers, "get">, refreshCookie: string) {
  const valuesOf = (suffix: string) => distinctValues(headers.get("cookie"), refreshCookie + suffix);
  const [proofs, marks] = [valuesOf(DEVICE), valuesOf(MARK)];
  return {
    /** A text that differs where the service may decide differently. */
    id: [...proofs, ...marks, headers.get("secure-session-skipped") ?? ""].join(" "),
    /**
     * Whether the session may be bound to this device, but the cookie that shows it has expired. The service then refuses the refresh as
     * if the session had ended. Browsers renew that cookie when they call the service, but not when they load a page.
     */
    mustRenew: proofs.length === 0 && marks.length > 0,
  };
}
