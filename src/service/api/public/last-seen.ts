/** What a session keeps of the request that last refreshed it, by the setting LAST_SEEN. */
import { hostOf, placeOf } from "../../../platform/net/subnet.ts";
import { browserOf, productOf } from "../../../platform/net/user-agent.ts";
import type { Requester } from "../../session/audit.ts";
import type { LastSeen } from "../../session/model.ts";

/** The most bytes of a user agent, as in `Client` of the admin API. */
const MAX_USER_AGENT = 512;

type Source = Pick<Requester, "address" | "userAgent">;

/** Returns the whole address and user agent. */
export function wholeLastSeen(source: Source): LastSeen {
  return { userAgent: userAgentOf(source), ipAddress: hostOf(source.address() ?? "") };
}

/** Returns the network in place of the address (/24 or /48), and the names of the browser and its system in place of the user agent. */
export function cutLastSeen(source: Source): LastSeen {
  const userAgent = userAgentOf(source);
  return { userAgent: browserOf(userAgent) ?? productOf(userAgent), ipAddress: placeOf(source.address() ?? "") };
}

/** Returns the characters of a user agent that mean the same to every reader: those of ASCII, without control characters. */
function userAgentOf(source: Source): string {
  return (source.userAgent?.() ?? "").replaceAll(/[^\x20-\x7e]/g, "").slice(0, MAX_USER_AGENT);
}
