/** The form of subscriptions and cursors in both stores. */
import type { SessionId } from "../session/model.ts";
import { storeMs, wallMs } from "../session/time.ts";
import {
  type DeliveryError,
  type Signal,
  type Subscription,
  type SubscriptionDefinition,
  type SubscriptionState,
  signalId,
} from "../signals/model.ts";
import type { Cursor, DeliveryCounts } from "../signals/ports.ts";

/** The number and the session of the last signal before a cursor; the session is `-` if there is no such signal. */
export type Position = { readonly number: number; readonly sid: string };

export const NO_SESSION = "-";

/** The value that is used as the cursor of a subscription that does not exist. */
export const NO_CURSOR = "" as Cursor;

export function cursorOf({ number, sid }: Position): Cursor {
  return `${number} ${sid}` as Cursor;
}

export function positionOf(cursor: Cursor): Position {
  const [number = "", sid = NO_SESSION] = cursor.split(" ");
  return { number: Number(number), sid };
}

type Known = {
  readonly sid: SessionId;
  readonly reason: string;
  readonly happenedAt: number;
  readonly client: string;
  readonly subject: string;
  readonly actor?: string | undefined;
};

export function signalOf({ sid, reason, happenedAt, client, subject, actor = "" }: Known): Signal {
  // The reason of an update is `updated:` and the version.
  const [what, version] = reason.split(":");
  const ending = {
    sessionId: sid,
    reason: what as Signal["reason"],
    happenedAt: storeMs(happenedAt),
    ...(version !== undefined && { version: Number(version) }),
  };
  return {
    id: signalId(ending),
    ...ending,
    ...(subject !== "" && { subject }),
    ...(client !== "" && { clientId: client }),
    ...(actor !== "" && { actor }),
  };
}

/** The part of a subscription that the service, not an operator, changes. */
type StatusText = {
  readonly createdAt: number;
  readonly state: string;
  readonly because: string;
  readonly failures: number;
  readonly lastError: string;
  readonly lastErrorAt: string;
};

export function subscriptionOf(
  id: string,
  definition: string,
  status: StatusText,
  counts: DeliveryCounts,
): Subscription {
  const { createdAt, state, because, failures, lastError, lastErrorAt } = status;
  const parsed = JSON.parse(definition) as SubscriptionDefinition;
  const current = { state, ...(because !== "" && { because }) } as SubscriptionState;
  return {
    ...parsed,
    ...current,
    id,
    createdAt: wallMs(createdAt),
    failures,
    ...(lastError !== "" && { lastError: lastError as DeliveryError, lastErrorAt: wallMs(Number(lastErrorAt)) }),
    delivered: counts.delivered,
    deadLetters: counts.deadLetters,
  };
}
