/** The assumptions of the searches, and what each of them looks for. */
import { judgeDevice, judgeEnd, shownBy } from "../../../src/session/device-binding.ts";
import { decide } from "../../../src/session/rotation.ts";
import type { Assumptions, Rules } from "./world.ts";

export const RULES: Rules = { judge: judgeDevice, judgeEnd, shownBy, decide };

type Search = Omit<Assumptions, keyof Rules>;

const SMALL = { inFlight: 1, stale: 1, forgets: true } as const;

/** Processes with stale files, of a session that was created with its key, and a thief with every token. */
export const CREATED_BOUND: Search = { ...SMALL, bound: "at creation", thief: true, inFlight: 2 };

/** The same, and the store falls back to earlier states. */
export const CREATED_BOUND_FAILOVER: Search = { ...SMALL, bound: "at creation", thief: true, failover: true };

/** Processes that begin with a proof. */
export const FIRST_PROOF: Search = { ...SMALL, bound: "by the first proof", thief: false, inFlight: 2, stale: 2 };

/** The same with a thief, which may bind the session first. */
export const FIRST_PROOF_THIEF: Search = { ...SMALL, bound: "by the first proof", thief: true, stale: 0 };

/** A thief that binds the session of a client without a key. */
export const NO_KEY_THIEF: Search = { ...SMALL, bound: "by the first proof", proves: false, thief: true, stale: 0 };
