import { StoreRefused, StoreUnavailable } from "../../session/ports.ts";

/**
 * Matches error replies that are caused by a bug in this service, not by a state of the server. After any other error (LOADING, READONLY,
 * OOM, BUSY, MISCONF, MOVED, CLUSTERDOWN, NOAUTH, NOPERM, …) or without a reply, the outcome is unknown.
 *
 * A missing permission has a code of its own (NOPERM) only outside of scripts. Within a script, the error has the code ERR. Its text in
 * Redis 7.0 is "The user executing the script can't …"; Redis since 7.2, and Valkey, "ACL failure in script: …".
 */
const BUGS =
  /^(WRONGTYPE|CROSSSLOT|ERR (?!max number of clients|.*master|.*replica|The user executing the script|ACL failure in script))/;

/** Translates a command's error to one of the domain. The original is not kept as the cause: it may contain the arguments of AUTH. */
export function translate(error: unknown): unknown {
  if (!(error instanceof Error) || error instanceof StoreUnavailable) return error;
  if (error.name === "ReplyError" && BUGS.test(error.message)) return error;
  return new StoreUnavailable(`Redis: ${error.message}`);
}

/** Returns whether Redis refused a command because its user lacks a permission. */
export function isDenied(error: unknown): error is Error {
  return error instanceof Error && error.message.startsWith("NOPERM");
}

/** Returns the error to report for a client's error: for a cluster, it is the last error of a node, which the client's error contains. */
export function reportedBy(error: Error): Error {
  return "lastNodeError" in error && error.lastNodeError instanceof Error ? error.lastNodeError : error;
}

export function isUnknownScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith("NOSCRIPT");
}

/** Returns the time, in ms, of a node that refused a command as late; undefined for another error. */
export function timeOfLate(error: unknown): number | undefined {
  if (!(error instanceof Error) || error.name !== "ReplyError") return undefined;
  const [, time] = /^(?:ERR )?LATE (\d+)/.exec(error.message) ?? [];
  return time === undefined ? undefined : Number(time);
}

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
