/** The assumptions of the searches, and what each of them looks for. */
import { judgeDevice } from "../../../src/session/device-binding.ts";
import type { OffInstance } from "./world.ts";

/** Instances that differ in the switch. */
export const OFF: OffInstance = { judge: judgeDevice, renews: "with a proof" };

/** Looks for a wrong logout. Registering at any time is more than any browser does. */
export const BROWSER = { inFlight: 1, slow: true, thief: false, registers: "at any time" } as const;

/** Looks for a wrong logout by a store that falls back. A browser registers a key as soon as it is offered to. */
export const FAILOVER = { inFlight: 1, slow: true, thief: false, registers: "when offered", failover: true } as const;

/** Looks for a wrong logout by instances that differ in the switch: some responses offer a key, and some do not. */
export const MIXED = { inFlight: 1, slow: true, thief: false, registers: "when offered", off: OFF } as const;

/** Looks for a thief that is served for longer than a device cookie lives, is not detected, or causes the user to be accused. */
export const THIEF = { inFlight: 1, slow: false, thief: true, registers: "when offered" } as const;
