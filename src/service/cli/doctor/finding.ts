/** `fault`: the service does not start, or fails its users. `warning`: it works, but a setting is unwise or will cause a problem. */
type Level = "ok" | "warning" | "fault";

export type Finding = {
  readonly check: CheckName;
  readonly level: Level;
  /** The result of the check, a sentence without a full stop. It never holds a secret. */
  readonly found: string;
  readonly remedy?: string;
};

export type CheckName =
  | "configuration"
  | "files"
  | "keys"
  | "admin tokens"
  | "certificate"
  | "browsers"
  | "redis"
  | "embedded store"
  | "service";

export type Report = {
  readonly findings: Finding[];
  readonly ok: (found: string) => void;
  readonly warning: (found: string, remedy: string) => void;
  readonly fault: (found: string, remedy: string) => void;
};

export function reportOf(check: CheckName): Report {
  const findings: Finding[] = [];
  return {
    findings,
    ok: (found) => void findings.push({ check, level: "ok", found }),
    warning: (found, remedy) => void findings.push({ check, level: "warning", found, remedy }),
    fault: (found, remedy) => void findings.push({ check, level: "fault", found, remedy }),
  };
}
