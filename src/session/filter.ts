/** Which sessions a list has. */
import type { Session } from "./model.ts";
import type { StoreMs } from "./time.ts";

/** A session matches when everything that is given does. */
export type SessionFilter = {
  /** What the subject begins with. */
  readonly subjectPrefix?: string;
  readonly clientId?: string;
  /** Part of the user agent or of the display name, in any case. */
  readonly device?: string;
  /** The device's address as the login gave it; one that ends in `.` or `:` stands for all that begin so. */
  readonly ipAddress?: string;
  /** Created at this time or later. */
  readonly createdFrom?: StoreMs;
  /** Created before this time. */
  readonly createdBefore?: StoreMs;
};

export const EVERY_SESSION: SessionFilter = {};

/** Whether the filter looks at more than times: most sessions may not match then. */
export function isSelective({ subjectPrefix, clientId, device, ipAddress }: SessionFilter): boolean {
  return (subjectPrefix ?? clientId ?? device ?? ipAddress) !== undefined;
}

/** Returns whether a session is one of those. */
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
