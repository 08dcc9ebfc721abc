/** The assumptions of each search, and the situation that each covers. */
import { judgeDevice, judgeEnd, provenBy } from "../../../../../src/service/session/devices/binding.ts";
import { decide } from "../../../../../src/service/session/rotation/rotation.ts";
import type { Assumptions, Rules } from "./world.ts";

export const RULES: Rules = { judge: judgeDevice, judgeEnd, provenBy, decide };

type Search = Omit<Assumptions, keyof Rules>;

const SMALL = { inFlight: 1, stale: 1, forgets: true } as const;

/**
 * The session is bound to the client's key from the start. The client's processes may have old copies of its token file, and a thief has
 * every token.
 */
export const CREATED_BOUND: Search = { ...SMALL, bound: "at creation", thief: true, inFlight: 2 };

/** The session is bound to the client's key from the start, a thief has every token, and the store may fall back to earlier states. */
export const CREATED_BOUND_FAILOVER: Search = { ...SMALL, bound: "at creation", thief: true, failover: true };

/** The first request with a proof binds the session. There is no thief. */
export const FIRST_PROOF: Search = { ...SMALL, bound: "by the first proof", thief: false, inFlight: 2, stale: 2 };

/** The first request with a proof binds the session, and a thief may send it before the client does. */
export const FIRST_PROOF_THIEF: Search = { ...SMALL, bound: "by the first proof", thief: true, stale: 0 };

/** The client has no key, so a thief may bind the client's session to the thief's own key. */
export const NO_KEY_THIEF: Search = { ...SMALL, bound: "by the first proof", proves: false, thief: true, stale: 0 };
