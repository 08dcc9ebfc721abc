/** What is searched for. */

/** A wrong logout. Registering at any time is more than any browser does. */
export const BROWSER = { inFlight: 1, slow: true, thief: false, registers: "at any time" } as const;

/** A wrong logout by a store that falls back. A browser registers a key when it is offered to, at once. */
export const FAILOVER = { inFlight: 1, slow: true, thief: false, registers: "when offered", failover: true } as const;

/** A thief that is served for longer than a device cookie lives, or is not detected, or accuses the user. */
export const THIEF = { inFlight: 1, slow: false, thief: true, registers: "when offered" } as const;
