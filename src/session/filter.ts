/** Decides which sessions a list contains. */
import type { Session } from "./model.ts";
import type { StoreMs } from "./time.ts";

/** A session matches if it meets every condition that is given. */
export type SessionFilter = {
  /** The beginning of the subject. */
  readonly subjectPrefix?: string;
  readonly clientId?: string;
  /** A part of the user agent or of the display name, in any case. */
  readonly device?: string;
  /** The device's address at the login. An address that ends in `.` or `:` matches all addresses that begin with it. */
  readonly ipAddress?: string;
  /** Created at this time or later. */
  readonly createdFrom?: StoreMs;
  /** Created before this time. */
  readonly createdBefore?: StoreMs;
};

export const EVERY_SESSION: SessionFilter = {};

/** Whether the filter has conditions other than times. Few sessions may match then. */
export function isSelective({ subjectPrefix, clientId, device, ipAddress }: SessionFilter): boolean {
  return (subjectPrefix ?? clientId ?? device ?? ipAddress) !== undefined;
}

/** Returns whether a session matches the filter. */
export function matches(session: Session, filter: SessionFilter): boolean {
  const { subjectPrefix = "", clientId, device, ipAddress, createdFrom, createdBefore } = filter;
  if (!session.subject.startsWith(subjectPrefix)) return false;
  if (clientId !== undefined && session.clientId !== clientId) return false;
  if (ipAddress !== undefined && !isAddress(session.client.ipAddress, ipAddress)) return false;
  if (createdFrom !== undefined && session.createdAt < createdFrom) return false;
  if (createdBefore !== undefined && session.createdAt >= createdBefore) return false;
  return device === undefined || isDevice(session, device.toLowerCase());
}

function isAddress(address: string, wanted: string): boolean {
  return /[.:]$/.test(wanted) ? address.startsWith(wanted) : address === wanted;
}

function isDevice({ client }: Session, part: string): boolean {
  return client.userAgent.toLowerCase().includes(part) || client.displayName.toLowerCase().includes(part);
}
