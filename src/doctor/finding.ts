/** The findings of the doctor. */

/** `fault`: the service does not start, or fails its users. `warning`: it works, but a setting is unwise or will cause a problem. */
type Level = "ok" | "warning" | "fault";

export type Finding = {
  /** The name of the check. */
  readonly check: Check;
  readonly level: Level;
  /** The result of the check, a sentence without a full stop. It never holds a secret. */
  readonly found: string;
  /** The remedy. */
  readonly remedy?: string;
};

const CHECKS = [
  "configuration",
  "files",
  "keys",
  "admin tokens",
  "certificate",
  "browsers",
  "redis",
  "embedded store",
  "service",
] as const;
type Check = (typeof CHECKS)[number];

/** Creates the findings of one check. */
type Report = {
  readonly ok: (found: string) => Finding;
  readonly warning: (found: string, remedy: string) => Finding;
  readonly fault: (found: string, remedy: string) => Finding;
};

export const reportOf = (check: Check): Report => ({
  ok: (found) => ({ check, level: "ok", found }),
  warning: (found, remedy) => ({ check, level: "warning", found, remedy }),
  fault: (found, remedy) => ({ check, level: "fault", found, remedy }),
});

export const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error));
