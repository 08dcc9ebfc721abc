import { StoreRefused } from "../../session/ports.ts";

export type Log = (level: "info" | "warn" | "error", message: string) => void;

/** Logs problems with Redis for the operator. A problem is logged once for as long as it lasts. */
export function createProblemLog(log: Log = () => {}) {
  const warned = new Set<string>();
  let current = "";
  return {
    warnOnce(message: string): void {
      if (warned.has(message)) return;
      warned.add(message);
      log("warn", `Redis: ${message}`);
    },
    report(error: unknown): void {
      const message = error instanceof Error ? error.message : String(error);
      if (message !== current) log(error instanceof StoreRefused ? "error" : "warn", `Redis: ${message}`);
      current = message;
    },
    /** Logs that Redis is usable again after a problem. */
    resolve(): void {
      if (current !== "") log("info", "Redis: serves again");
      current = "";
    },
  };
}
