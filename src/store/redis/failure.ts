import { StoreUnavailable } from "../../session/ports.ts";

/**
 * Replies of Redis that mean a mistake of ours, not a state of the server. Whatever else comes back (LOADING, READONLY, OOM,
 * BUSY, MISCONF, MOVED, CLUSTERDOWN, NOAUTH, NOPERM, …) or does not come back means that we cannot know.
 *
 * A missing permission has a code of its own (NOPERM) only outside of scripts. Within one it is an ERR, which Redis 7.0 words
 * "The user executing the script can't …"; Redis since 7.2, and Valkey, "ACL failure in script: …".
 */
const BUGS =
  /^(WRONGTYPE|CROSSSLOT|ERR (?!max number of clients|.*master|.*replica|The user executing the script|ACL failure in script))/;

/** What a failed command means to the domain. The error itself is not kept as a cause: it may name the arguments of AUTH. */
export function translate(error: unknown): unknown {
  if (!(error instanceof Error) || error instanceof StoreUnavailable) return error;
  if (error.name === "ReplyError" && BUGS.test(error.message)) return error;
  return new StoreUnavailable(`Redis: ${error.message}`);
}

export function isUnknownScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith("NOSCRIPT");
}

/** The time of a node that refused a command as late, ms; undefined for another error. */
export function timeOfLate(error: unknown): number | undefined {
  if (!(error instanceof Error) || error.name !== "ReplyError") return undefined;
  const [, time] = /^(?:ERR )?LATE (\d+)/.exec(error.message) ?? [];
  return time === undefined ? undefined : Number(time);
}
