/** The operations of receivers on their streams (SSF 1.0 section 8.1.1). A stream is a subscription that its receiver manages. */
import { randomBytes } from "node:crypto";
import type { Requester } from "../../session/audit.ts";
import { invalidRequest, ServiceError } from "../../session/errors.ts";
import type { ManagementDeps } from "../manage.ts";
import { definitionOf, MAX_SUBSCRIPTIONS, type SubscriptionDefinition } from "../model.ts";
import { createSequences } from "../sequence.ts";
import { changeOwn, findStream, ownerOf } from "./change.ts";
import {
  configurationOf,
  isStream,
  newDefinition,
  type StreamConfiguration,
  type StreamPlace,
  type StreamProperties,
  type TransmitterProperties,
  withDelivery,
  withProperties,
} from "./configuration.ts";
import { pushKept } from "./stream-events.ts";

export type StreamDeps = ManagementDeps & StreamPlace;

/** A new configuration, or parts of it. It also contains the transmitter's properties as the receiver sent them. */
export type StreamChange = Partial<StreamProperties> & Partial<TransmitterProperties>;

const ID_BYTES = 16;
/** How many streams one receiver may have, so that no receiver can take all subscriptions. */
export const MAX_OWN_STREAMS = 32;

const creations = createSequences();

/** Creates a stream. A receiver's streams are created one after the other, so that all count towards the limit. @throws ServiceError */
export async function createStream(
  deps: StreamDeps,
  wanted: StreamProperties,
  requester: Requester,
): Promise<StreamConfiguration> {
  const owner = ownerOf(requester);
  const id = randomBytes(ID_BYTES).toString("hex");
  await creations(owner, async () => {
    const own = (await deps.subscriptions.known()).filter(({ stream }) => stream?.owner === owner);
    if (own.length >= MAX_OWN_STREAMS) {
      throw invalidRequest("", `a receiver may have ${MAX_OWN_STREAMS} streams, and there are as many`);
    }
    const definition = newDefinition(deps, owner, requester.adminClientId, wanted);
    if (await deps.subscriptions.create(id, definition, deps.wallClock())) return;
    throw invalidRequest("", `there are ${MAX_SUBSCRIPTIONS} subscriptions, and there may be no more`);
  });
  deps.audit({ event: "subscription_changed", subscription: id, change: "created" }, requester);
  return configurationOf(await findStream(deps, id, requester), deps);
}

export async function readStream(deps: StreamDeps, id: string, requester: Requester): Promise<StreamConfiguration> {
  return configurationOf(await findStream(deps, id, requester), deps);
}

export async function listStreams(deps: StreamDeps, requester: Requester): Promise<readonly StreamConfiguration[]> {
  const owner = ownerOf(requester);
  const streams = (await deps.subscriptions.list()).filter(isStream);
  return streams.filter(({ stream }) => stream.owner === owner).map((stream) => configurationOf(stream, deps));
}

/** Changes the properties that are given. @throws ServiceError */
export async function updateStream(
  deps: StreamDeps,
  id: string,
  change: StreamChange,
  requester: Requester,
): Promise<StreamConfiguration> {
  const changed = await changeOwn(deps, id, requester, (stream) => {
    const now = configurationOf(stream, deps);
    checkUnchanged(now, change);
    const { description = now.description, eventsRequested = now.eventsRequested, delivery } = change;
    const before = definitionOf(stream);
    const definition = delivery === undefined ? before : withSecretOf(before, withDelivery(deps, before, delivery));
    return withProperties(definition, { eventsRequested, ...(description !== undefined && { description }) });
  });
  await pushKept(deps, changed);
  return configurationOf(changed, deps);
}

/** Replaces all properties that a receiver sets. @throws ServiceError */
export async function replaceStream(
  deps: StreamDeps,
  id: string,
  wanted: StreamProperties & Partial<TransmitterProperties>,
  requester: Requester,
): Promise<StreamConfiguration> {
  const changed = await changeOwn(deps, id, requester, (stream) => {
    checkUnchanged(configurationOf(stream, deps), wanted);
    const before = definitionOf(stream);
    return withProperties(withSecretOf(before, withDelivery(deps, before, wanted.delivery)), wanted);
  });
  await pushKept(deps, changed);
  return configurationOf(changed, deps);
}

/** Deletes a stream. @throws ServiceError if the receiver has no stream of that id */
export async function deleteStream(deps: StreamDeps, id: string, requester: Requester): Promise<void> {
  await findStream(deps, id, requester);
  if (!(await deps.subscriptions.delete(id))) throw new ServiceError("E404_NOT_FOUND");
  deps.audit({ event: "subscription_changed", subscription: id, change: "deleted" }, requester);
}

/** Returns a definition that keeps the stored authorization header if the receiver sends none: no response contains the header. */
function withSecretOf({ endpoint, sealedSecret }: SubscriptionDefinition, changed: SubscriptionDefinition) {
  const isKept = changed.sealedSecret === undefined && changed.endpoint === endpoint && sealedSecret !== undefined;
  return isKept ? { ...changed, sealedSecret } : changed;
}

/** Checks that the transmitter's properties are unchanged: a receiver may only send them as it has read them (SSF 1.0 section 8.1.1.3). */
function checkUnchanged(now: StreamConfiguration, change: StreamChange): void {
  const textOf = (value: string | number | readonly string[] | undefined) => [value].flat().sort().join("\n");
  for (const [name, field] of TRANSMITTER_FIELDS) {
    const given = change[name];
    if (given === undefined || textOf(given) === textOf(now[name])) continue;
    throw invalidRequest(field, "is set by the transmitter");
  }
}

/** The transmitter's properties, each with the name of its field in requests. */
const TRANSMITTER_FIELDS = [
  ["iss", "iss"],
  ["aud", "aud"],
  ["eventsSupported", "events_supported"],
  ["eventsDelivered", "events_delivered"],
  ["minVerificationInterval", "min_verification_interval"],
] as const;
