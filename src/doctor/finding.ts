/** What the doctor finds. */

/** `fault`: the service does not start, or fails its users. `warning`: it works, and something will go wrong or is unwise. */
type Level = "ok" | "warning" | "fault";

export type Finding = {
  /** What was looked at. */
  readonly check: Check;
  readonly level: Level;
  /** What was found, a sentence without a full stop. Never a secret. */
  readonly found: string;
  /** What to do about it. */
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

/** Findings of one check. */
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
