/** Decides which sessions a list contains. */
import type { ClientKind, Session } from "../model.ts";
import { type StoreMs, storeMs } from "../time.ts";

/** A session matches if it meets every condition that is given. */
export type SessionFilter = {
  readonly subjectPrefix?: string;
  readonly clientId?: string;
  readonly kind?: ClientKind;
  /** A text that the user agent or the display name contains; case does not matter. */
  readonly device?: string;
  /** The address of the device at login. A text that ends with `.` or `:` matches all addresses that start with it. */
  readonly ipAddress?: string;
  /** Sessions created at this time or later match. */
  readonly createdFrom?: StoreMs;
  /** Sessions created before this time match. */
  readonly createdBefore?: StoreMs;
};

/** No session was created before EARLIEST or after LATEST. */
const EARLIEST = storeMs(0);
const LATEST = storeMs(Number.POSITIVE_INFINITY);

export const EVERY_SESSION: SessionFilter = {};

/** Returns whether the filter has conditions other than times. Few sessions may match such a filter. */
export function isSelective({ subjectPrefix, clientId, kind, device, ipAddress }: SessionFilter): boolean {
  return (subjectPrefix ?? clientId ?? kind ?? device ?? ipAddress) !== undefined;
}

export function matches(session: Session, filter: SessionFilter): boolean {
  const { subjectPrefix = "", clientId, kind, device, ipAddress } = filter;
  const { createdFrom = EARLIEST, createdBefore = LATEST } = filter;
  if (!session.subject.startsWith(subjectPrefix)) return false;
  if (clientId !== undefined && session.clientId !== clientId) return false;
  if (kind !== undefined && session.kind !== kind) return false;
  if (ipAddress !== undefined && !isAddress(session.client.ipAddress, ipAddress)) return false;
  if (session.createdAt < createdFrom || session.createdAt >= createdBefore) return false;
  return device === undefined || isDevice(session, device.toLowerCase());
}

function isAddress(address: string, wanted: string): boolean {
  return /[.:]$/.test(wanted) ? address.startsWith(wanted) : address === wanted;
}

function isDevice({ client }: Session, part: string): boolean {
  return client.userAgent.toLowerCase().includes(part) || client.displayName.toLowerCase().includes(part);
}
