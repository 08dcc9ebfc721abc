import { type EndReason, type LogEntry, parseSessionId } from "../../session/model.ts";
import { storeMs } from "../../session/time.ts";

/** Precedes the session in a mark that makes older access tokens stale. A version that does not know marks finds no session id there. */
const MARK = "~";

/**
 * Parses an entry of the log in the form in which the scripts write and publish it: '<sid> <revoked at> <expires at> <reason>', or
 * '~<sid> <marked at> <expires at> <min version>'.
 */
function parseEntry(text: string): LogEntry | undefined {
  const [named = "", at, until, last] = text.split(" ");
  const isMark = named.startsWith(MARK);
  const sid = parseSessionId(isMark ? named.slice(MARK.length) : named);
  if (sid === undefined || last === undefined) return undefined;
  const [time, expiresAt] = [storeMs(Number(at)), storeMs(Number(until))];
  if (isMark) return { sid, markedAt: time, expiresAt, minVersion: Number(last) };
  return { sid, revokedAt: time, expiresAt, reason: last as EndReason };
}

/** Parses those of the texts that are entries of the log, and ignores all other texts. */
export function parseEntries(texts: readonly string[]): LogEntry[] {
  return texts.map(parseEntry).filter((entry) => entry !== undefined);
}
