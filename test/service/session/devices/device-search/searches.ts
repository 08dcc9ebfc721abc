/** The assumptions of each search. Each comment says which fault the search looks for. */
import { judgeDevice } from "../../../../../src/service/session/devices/binding.ts";
import type { OffInstance } from "./world.ts";

/** An instance with device binding switched off. A search adds it to an instance with device binding switched on. */
export const OFF: OffInstance = { judge: judgeDevice, renews: "with a proof" };

/** Looks for a wrong logout. The browser may register a key at any time, which is more than any real browser does. */
export const BROWSER = { inFlight: 1, slow: true, thief: false, registers: "at any time" } as const;

/** Looks for a wrong logout when the store falls back to older data. The browser registers a key as soon as a response offers it. */
export const FAILOVER = { inFlight: 1, slow: true, thief: false, registers: "when offered", failover: true } as const;

/** Looks for a wrong logout when device binding is off on some instances: some responses offer to register a key, and some do not. */
export const MIXED = { inFlight: 1, slow: true, thief: false, registers: "when offered", off: OFF } as const;

/**
 * Looks for a thief that is served for longer than a device cookie lives, that stays undetected, or that makes the user look like a
 * thief.
 */
export const THIEF = { inFlight: 1, slow: false, thief: true, registers: "when offered" } as const;
