/** Which sessions a list has. */
import type { Session } from "./model.ts";

/** A session matches when everything that is given does. */
export type SessionFilter = {
  readonly clientId?: string;
  /** Part of the user agent or of the display name, in any case. */
  readonly device?: string;
  /** Created at this time or later, ms. */
  readonly createdFrom?: number;
  /** Created before this time, ms. */
  readonly createdBefore?: number;
};

export const EVERY_SESSION: SessionFilter = {};

/** Whether a session is one of those; the times of both are by the same clock. */
export function matches(session: Session, filter: SessionFilter): boolean {
  const { clientId, device, createdFrom, createdBefore } = filter;
  if (clientId !== undefined && session.clientId !== clientId) return false;
  if (createdFrom !== undefined && session.createdAt < createdFrom) return false;
  if (createdBefore !== undefined && session.createdAt >= createdBefore) return false;
  return device === undefined || isDevice(session, device.toLowerCase());
}

/** The filter by another clock, which is `shift` ms behind. */
export function byEarlierClock(filter: SessionFilter, shift: number): SessionFilter {
  const { createdFrom, createdBefore } = filter;
  return {
    ...filter,
    ...(createdFrom !== undefined && { createdFrom: createdFrom - shift }),
    ...(createdBefore !== undefined && { createdBefore: createdBefore - shift }),
  };
}

function isDevice({ client }: Session, part: string): boolean {
  return client.userAgent.toLowerCase().includes(part) || client.displayName.toLowerCase().includes(part);
}
