import { type EndReason, type LogEntry, parseSessionId } from "../../session/model.ts";
import { latest, type StoreMs, storeMs } from "../../session/time.ts";

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

/** Returns the time of creation up to which a logout of everyone ('* <created until> …') has ended all sessions; 0 if there is none. */
export function revokedUntilOf(texts: readonly string[]): StoreMs {
  let until = storeMs(0);
  for (const text of texts) {
    if (text.startsWith("* ")) until = latest(until, storeMs(Number(text.split(" ")[1])));
  }
  return until;
}

const ENDING = "ending ";

/** Returns whether a text that lua/revocations.lua has returned names a partition in which logouts of many sessions are under way. */
export function isEndings(text: string): boolean {
  return text.startsWith(ENDING);
}

export function tagOfEndings(text: string): string {
  return text.split(" ")[1] ?? "";
}

const LOG = "log ";
const REST = "rest ";
const NEXT = "next ";

/** What one run of lua/revocations.lua returned. */
type LogPiece = {
  /** For each partition with new entries, the entry after which the next reading begins. */
  readonly lastEntries: ReadonlyMap<string, string>;
  /** The partition with which the next run must begin; undefined if all was read. */
  readonly rest: string | undefined;
};

export function pieceOf(texts: readonly string[]): LogPiece {
  const lastEntries = new Map<string, string>();
  let tag = "";
  let rest: string | undefined;
  for (const text of texts) {
    if (text.startsWith(LOG)) tag = text.slice(LOG.length);
    else if (text.startsWith(REST)) rest = text.slice(REST.length);
    else if (tag !== "") lastEntries.set(tag, text.startsWith(NEXT) ? text.slice(NEXT.length) : text);
  }
  return { lastEntries, rest };
}
