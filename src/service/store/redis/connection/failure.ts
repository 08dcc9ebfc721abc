import type { Cluster } from "ioredis";
import { StoreRefused, StoreUnavailable } from "../../../session/ports.ts";

/**
 * Matches error replies that are caused by a bug in this service, not by a state of the server, such as a renamed command. After any other
 * error (LOADING, READONLY, OOM, BUSY, MISCONF, MOVED, CLUSTERDOWN, NOAUTH, NOPERM, …) or without a reply, the outcome is unknown.
 *
 * A missing permission has a code of its own (NOPERM) only outside of scripts. Within a script, the error has the code ERR. Its text in
 * Redis 7.0 is "The user executing the script can't …"; Redis since 7.2, and Valkey, "ACL failure in script: …".
 */
const BUGS =
  /^(WRONGTYPE|CROSSSLOT|ERR (?!unknown command|Unknown Redis command|max number of clients|.*master|.*replica|The user executing the script|ACL failure in script))/;

/** Translates a command's error to one of the domain. The original is not kept as the cause: it may contain the arguments of AUTH. */
export function translate(error: unknown): unknown {
  if (!(error instanceof Error) || error instanceof StoreUnavailable) return error;
  if (error.name === "ReplyError" && BUGS.test(error.message)) return error;
  return new StoreUnavailable(`Redis: ${textOf(error)}`);
}

/** Returns the text of an error for operators. Two texts of ioredis name its options, which are none of the service. */
export function textOf(error: Error): string {
  const isCutOff = error.name === "MaxRetriesPerRequestError" || error.message.startsWith("Stream isn't writeable");
  // Redis repeats the first arguments of a command that it does not know, and ioredis a reply that no command waits for.
  return isCutOff
    ? "the connection was lost"
    : error.message.replace(/(, with args beginning with| Last reply):.*/s, "");
}

/** Returns whether Redis refused a command because its user lacks a permission. */
export function isDenied(error: unknown): error is Error {
  return error instanceof Error && error.message.startsWith("NOPERM");
}

/** Returns whether the server does not know a command, because it was renamed or switched off. */
export const isUnknownCommand = (error: unknown): boolean =>
  error instanceof Error && error.message.startsWith("ERR unknown command");

/** Returns the error to report for a client's error: for a cluster, it is the last error of a node, which the client's error contains. */
export function reportedBy(error: Error): Error {
  return "lastNodeError" in error && error.lastNodeError instanceof Error ? error.lastNodeError : error;
}

/**
 * Makes a cluster's client report why its nodes cannot be reached. ioredis keeps the last error of a command, which says only that the
 * connection was closed; the cause, such as a certificate that is not accepted, is an event before it.
 */
export function reportCauses(cluster: Cluster): void {
  let cause: Error | undefined;
  cluster.on("refresh", () => (cause = undefined));
  cluster.on("node error", (error: Error) => (cause = "code" in error ? error : cause));
  cluster.on("error", (error: Error & { lastNodeError?: Error }) => {
    const isReply = error.lastNodeError?.name === "ReplyError";
    if (error.lastNodeError !== undefined && cause !== undefined && !isReply) error.lastNodeError = cause;
  });
}

/** Why no Sentinel names the master. */
export class SentinelFault extends Error {
  override readonly name = "SentinelFault";
  /** The code of the failed connection, such as `ECONNREFUSED`; undefined if a Sentinel has replied. */
  readonly code: string | undefined;
  /** The reply of a Sentinel, if one has replied. Otherwise why the last one gave none. */
  readonly reply: string;

  constructor(master: string, cause: Error | undefined) {
    const reply = cause?.message ?? "no reply";
    super(`no Sentinel names the master ${master}: ${reply}`);
    this.reply = reply;
    this.code = cause !== undefined && "code" in cause ? String(cause.code) : undefined;
  }

  /** Whether the configuration, here or of the Sentinels, has to be corrected. Waiting would not help. */
  get isFinal(): boolean {
    return this.code === undefined && /^(WRONGPASS|NOAUTH|NOPERM|ERR AUTH|ERR No such master)/.test(this.reply);
  }
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

export type LogLine = (level: "info" | "warn" | "error", message: string) => void;

/** How many different messages are logged until Redis serves again: the nodes of a cluster may take turns with theirs. */
const MAX_MESSAGES = 16;

/** Logs problems with Redis for the operator. A problem is logged once for as long as it lasts. */
export function createProblemLog(log: LogLine = () => {}) {
  const warned = new Set<string>();
  const current = new Set<string>();
  return {
    warnOnce(message: string): void {
      if (warned.has(message)) return;
      warned.add(message);
      log("warn", `Redis: ${message}`);
    },
    report(error: unknown): void {
      const message = error instanceof Error ? textOf(reportedBy(error)) : String(error);
      if (current.has(message) || current.size === MAX_MESSAGES) return;
      current.add(message);
      log(error instanceof StoreRefused ? "error" : "warn", `Redis: ${message}`);
    },
    /** Logs that Redis is usable again after a problem. */
    resolve(): void {
      if (current.size > 0) log("info", "Redis: serves again");
      current.clear();
    },
  };
}
