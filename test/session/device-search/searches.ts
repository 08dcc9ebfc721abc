/** What is searched for. */
import { judgeDevice } from "../../../src/session/device-binding.ts";
import type { OffInstance } from "./world.ts";

/** Instances that differ in the switch. */
export const OFF: OffInstance = { judge: judgeDevice, renews: "with a proof" };

/** A wrong logout. Registering at any time is more than any browser does. */
export const BROWSER = { inFlight: 1, slow: true, thief: false, registers: "at any time" } as const;

/** A wrong logout by a store that falls back. A browser registers a key when it is offered to, at once. */
export const FAILOVER = { inFlight: 1, slow: true, thief: false, registers: "when offered", failover: true } as const;

/** A wrong logout by instances that differ in the switch: some responses offer a key, and some do not. */
export const MIXED = { inFlight: 1, slow: true, thief: false, registers: "when offered", off: OFF } as const;

/** A thief that is served for longer than a device cookie lives, or is not detected, or accuses the user. */
export const THIEF = { inFlight: 1, slow: false, thief: true, registers: "when offered" } as const;
