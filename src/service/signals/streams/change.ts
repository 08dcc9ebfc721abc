/** Finds streams of a receiver, and changes their definitions. */
import type { Audit, Requester } from "../../session/audit.ts";
import { ServiceError } from "../../session/errors.ts";
import { definitionOf, type SubscriptionDefinition } from "../model.ts";
import type { SubscriptionStore } from "../ports.ts";
import { isStream, type StreamSubscription } from "./configuration.ts";

export type ChangeDeps = { readonly subscriptions: SubscriptionStore };

/** How often a change is tried again if the stream is changed at the same time. */
const MAX_TRIES = 8;

/** Returns the name of the requester's credential, which identifies a receiver. @throws ServiceError if the request has none */
export function ownerOf({ adminName }: Requester): string {
  if (adminName === undefined) throw new ServiceError("E001_AUTH_FAILURE");
  return adminName;
}

/** Returns a stream of the receiver. @throws ServiceError if the receiver has no stream of that id */
export async function findStream(deps: ChangeDeps, id: string, requester: Requester): Promise<StreamSubscription> {
  const found = await findAnyStream(deps, id);
  if (found.stream.owner !== ownerOf(requester)) throw new ServiceError("E404_NOT_FOUND");
  return found;
}

async function findAnyStream({ subscriptions }: ChangeDeps, id: string): Promise<StreamSubscription> {
  const found = await subscriptions.get(id);
  if (found === undefined || !isStream(found)) throw new ServiceError("E404_NOT_FOUND");
  return found;
}

/** Changes a stream of the receiver, and writes an audit event. @throws ServiceError */
export async function changeOwn(
  deps: ChangeDeps & { readonly audit: Audit },
  id: string,
  requester: Requester,
  change: (stream: StreamSubscription) => SubscriptionDefinition,
): Promise<StreamSubscription> {
  await findStream(deps, id, requester);
  const changed = await changeStream(deps, id, change);
  deps.audit({ event: "subscription_changed", subscription: id, change: "updated" }, requester);
  return changed;
}

/** Replaces a stream's definition by one made from it, and tries again if another request changes it meanwhile. @throws ServiceError */
export async function changeStream(
  deps: ChangeDeps,
  id: string,
  change: (stream: StreamSubscription) => SubscriptionDefinition,
): Promise<StreamSubscription> {
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const stream = await findAnyStream(deps, id);
    const before = definitionOf(stream);
    const definition = change(stream);
    if (JSON.stringify(definition) === JSON.stringify(before)) return stream;
    if (await deps.subscriptions.define(id, definition, before)) return findAnyStream(deps, id);
  }
  throw new ServiceError("E503_UNAVAILABLE");
}
