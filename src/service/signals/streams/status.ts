/** The status of a stream (SSF 1.0 section 8.1.2). */
import type { Requester } from "../../session/audit.ts";
import { invalidRequest, ServiceError } from "../../session/errors.ts";
import type { ManagementDeps } from "../manage.ts";
import { definitionOf, type StreamSettings, type StreamStatus, type SubscriptionState } from "../model.ts";
import { changeStream, findStream } from "./change.ts";
import { isDisabled, type StreamSubscription } from "./configuration.ts";
import { pushHeld } from "./stream-events.ts";

type StatusOfStream = { readonly streamId: string; readonly status: StreamStatus; readonly reason?: string };

const STATES: Readonly<Record<StreamStatus, SubscriptionState>> = {
  enabled: { state: "active" },
  paused: { state: "paused", because: "receiver" },
  disabled: { state: "paused", because: "disabled" },
};

const CHANGES = { enabled: "resumed", paused: "paused", disabled: "disabled" } as const;

export async function getStatus(
  deps: Pick<ManagementDeps, "subscriptions">,
  id: string,
  requester: Requester,
): Promise<StatusOfStream> {
  return statusOf(await findStream(deps, id, requester));
}

type StatusChange = { readonly status: string; readonly reason?: string };

/** Changes the status of a stream. @throws ServiceError, for example if an operator has paused the stream */
export async function updateStatus(
  deps: ManagementDeps,
  id: string,
  change: StatusChange,
  requester: Requester,
): Promise<StatusOfStream> {
  const { status } = change;
  if (!isStatus(status)) throw invalidRequest("status", "is none of enabled, paused and disabled");
  const { subscriptions, audit } = deps;
  for (let isStored = false; ; isStored = true) {
    const stream = await findStream(deps, id, requester);
    const isHeld = isPausedBy(stream, "operator");
    if (isHeld && status !== "paused" && !isStored) {
      throw new ServiceError("E403_FORBIDDEN", "an operator has paused the stream");
    }
    if (isHeld && !isStored) return statusOf(stream);
    if (!isHeld) {
      await storeWish(deps, id, status, change.reason);
      // Signals of sessions that ended while the stream was disabled are not delivered.
      if (status !== "disabled" && isDisabled(stream)) await subscriptions.restart(id);
      // If the state was changed in the meantime, the update begins again.
      if (!(await subscriptions.setState(id, STATES[status], stateOf(stream)))) continue;
    }
    // If an operator has paused the stream after the wish was stored, it is in force once the operator resumes the stream.
    audit({ event: "subscription_changed", subscription: id, change: CHANGES[status] }, requester);
    if (!isHeld && status === "enabled") await pushHeld(deps, id);
    return getStatus(deps, id, requester);
  }
}

/** Stores which status the receiver asks for. It outlasts a pause by an operator. */
function storeWish(deps: ManagementDeps, id: string, status: StreamStatus, reason?: string): Promise<unknown> {
  return changeStream(deps, id, (now) => {
    const { statusReason: _, wanted: _before, ...settings } = now.stream;
    const wish = {
      ...(status !== "enabled" && { wanted: status }),
      ...(reason !== undefined && { statusReason: reason }),
    };
    return {
      ...definitionOf(now),
      stream: { ...(status === "disabled" ? withoutPending(settings) : settings), ...wish },
    };
  });
}

/** Returns the settings without pending events, which a disabled stream does not keep. */
function withoutPending({ pending: _, ...settings }: StreamSettings): StreamSettings {
  return settings;
}

function statusOf(stream: StreamSubscription): StatusOfStream {
  const { id: streamId, stream: settings } = stream;
  if (isPausedBy(stream, "operator")) return { streamId, status: "paused", reason: "paused by an operator" };
  if (isPausedBy(stream, "failing")) return { streamId, status: "paused", reason: "the receiver has failed for a day" };
  const status = stream.state === "active" ? "enabled" : isDisabled(stream) ? "disabled" : "paused";
  return { streamId, status, ...(settings.statusReason !== undefined && { reason: settings.statusReason }) };
}

function stateOf(stream: StreamSubscription): SubscriptionState {
  return stream.state === "active" ? { state: "active" } : { state: "paused", because: stream.because };
}

function isPausedBy(stream: StreamSubscription, because: "operator" | "failing"): boolean {
  return stream.state === "paused" && stream.because === because;
}

function isStatus(text: string): text is StreamStatus {
  return Object.hasOwn(STATES, text);
}
