/** Events about a stream itself: verification events, and changes of its status. */
import { randomBytes } from "node:crypto";
import type { Requester } from "../../session/audit.ts";
import { ServiceError } from "../../session/errors.ts";
import type { AttemptDeps } from "../delivery/attempt.ts";
import { errorOfStatus } from "../kinds/request.ts";
import { streamEventToken, tokenRequest } from "../kinds/ssf.ts";
import { type DeliveryError, definitionOf, type PendingEvent, type StreamEvent, type StreamStatus } from "../model.ts";
import { type ChangeDeps, changeStream, findStream } from "./change.ts";
import { isDisabled, isStream, type StreamSubscription } from "./configuration.ts";

export interface VerificationLimit {
  /** Counts a verification event. Returns undefined within the limit, otherwise how long to wait, in ms. */
  take(stream: string, receiver: string): number | undefined;
  /** Uncounts an event that was not sent. */
  giveBack(stream: string, receiver: string): void;
}

type StreamEventDeps = AttemptDeps & ChangeDeps;

const ID_BYTES = 16;
/** How many events per stream are kept for a polling receiver. */
const MAX_PENDING = 8;
/** How many events this instance pushes at the same time: in all, for one receiver, and for one stream. */
const MAX_PUSHES = { all: 16, receiver: 8, stream: 4 } as const;
/** The streams of the events that are being pushed: one entry for each event. */
const pushing: StreamSubscription[] = [];

/**
 * Sends a verification event (SSF 1.0 section 8.1.4). Returns how long the receiver must wait, in ms, if it requests them more often than
 * the stream's `min_verification_interval` allows; undefined if the event is sent. @throws ServiceError
 */
export async function verifyStream(
  deps: StreamEventDeps & { readonly verificationLimit: VerificationLimit },
  id: string,
  state: string | undefined,
  requester: Requester,
): Promise<number | undefined> {
  const stream = await findStream(deps, id, requester);
  const waitMs = deps.verificationLimit.take(id, stream.stream.owner);
  if (waitMs !== undefined) return waitMs;
  const event = { type: "verification", ...(state !== undefined && { state }) } as const;
  if (await sendStreamEvent(deps, stream, event)) return undefined;
  deps.verificationLimit.giveBack(id, stream.stream.owner);
  throw new ServiceError("E429_RATE_LIMITED");
}

/**
 * Notifies the receiver that an operator has changed the status of its stream (SSF 1.0 section 8.1.5). It never fails, because the
 * operator's change must succeed. If too many events are under way, the notification is dropped, so that signals need not wait.
 */
export async function announceChange(
  deps: StreamEventDeps,
  stream: StreamSubscription,
  change: "paused" | "resumed",
): Promise<void> {
  const status: StreamStatus = change === "paused" ? "paused" : "enabled";
  const event = { type: "stream-updated", status, reason: `${change} by an operator` } as const;
  await sendStreamEvent(deps, stream, event).catch(deps.events.onFailure);
}

/** For how long further losses of a stream are not announced, in ms: each partition of the log has its own. */
const ANNOUNCED_MS = 60_000;

/** Why events were lost: the log no longer has them, or the receiver did not accept them. */
const LOSSES = {
  lost: "events were lost: they had waited for longer than they are kept",
  given_up: "events were lost: they were not accepted",
} as const;

/**
 * Returns a function that notifies the receiver of a stream that it does not get some of its signals. SSF has no event for that, so it is
 * the reason of an update that changes nothing else. It never fails, and other subscriptions have no way to be notified.
 * @param clock a clock that is never set, in ms
 */
export function createLossAnnouncer(deps: StreamEventDeps, clock: () => number) {
  const announced = new Map<string, number>();

  async function announce(id: string, loss: keyof typeof LOSSES): Promise<void> {
    const stream = await deps.subscriptions.get(id);
    if (stream === undefined || !isStream(stream) || stream.state !== "active") return;
    const event = { type: "stream-updated", status: "enabled", reason: LOSSES[loss] } as const;
    if (!(await sendStreamEvent(deps, stream, event))) announced.delete(id);
  }

  return (id: string, loss: keyof typeof LOSSES): void => {
    const now = clock();
    for (const [one, at] of announced) if (now - at >= ANNOUNCED_MS) announced.delete(one);
    if (announced.has(id)) return;
    announced.set(id, now);
    announce(id, loss).catch((error: unknown) => {
      announced.delete(id);
      deps.events.onFailure(error);
    });
  };
}

/**
 * Pushes an event without waiting for the receiver, or keeps it for polls. A paused stream transmits only the events about its pause (SSF
 * 1.0 section 8.1.2.1): other events are kept until the stream is resumed, or dropped if the stream is disabled. Returns false if the event
 * was not accepted, because too many events are being pushed or kept already.
 */
async function sendStreamEvent(
  deps: StreamEventDeps,
  stream: StreamSubscription,
  event: StreamEvent,
): Promise<boolean> {
  const sent = { id: randomBytes(ID_BYTES).toString("base64url"), createdAt: deps.wallClock(), event };
  const isHeld = stream.state === "paused" && event.type === "verification";
  if (isHeld && isDisabled(stream)) return true;
  if (isHeld || stream.kind === "ssf_poll") {
    let isKept = false;
    const kept = await changeStream(deps, stream.id, (now) => {
      const { pending = [] } = now.stream;
      isKept = pending.length < MAX_PENDING;
      return { ...definitionOf(now), stream: isKept ? { ...now.stream, pending: [...pending, sent] } : now.stream };
    });
    // The receiver may have resumed the stream in the meantime, or have asked for deliveries by push.
    await pushKept(deps, kept);
    return isKept;
  }
  if (!hasRoom(stream)) return false;
  beginPushing(deps, stream, [sent]);
  return true;
}

/**
 * Pushes the events that were held while a stream was paused, unless it still is. If too many are under way, the rest is held until the
 * next resume.
 */
export async function pushHeld(deps: StreamEventDeps, id: string): Promise<void> {
  let held: readonly PendingEvent[] = [];
  const stream = await changeStream(deps, id, (now) => {
    const isPushed = now.kind === "ssf_push" && now.state === "active" && hasRoom(now);
    const { pending = [], ...settings } = now.stream;
    held = isPushed ? pending : [];
    return isPushed ? { ...definitionOf(now), stream: settings } : definitionOf(now);
  });
  beginPushing(deps, stream, held);
}

/** Pushes the events that are kept for a stream, if its receiver neither polls nor waits for the stream to be resumed. */
export async function pushKept(deps: StreamEventDeps, { id, kind, state, stream }: StreamSubscription): Promise<void> {
  if (kind === "ssf_push" && state === "active" && stream.pending !== undefined) await pushHeld(deps, id);
}

/** Pushes events one after the other. Together they count as one event towards the limits of MAX_PUSHES. */
function beginPushing(deps: StreamEventDeps, stream: StreamSubscription, sent: readonly PendingEvent[]): void {
  pushing.push(stream);
  const pushAll = async () => {
    for (const event of sent) await push(deps, stream, event);
  };
  void pushAll().finally(() => pushing.splice(pushing.indexOf(stream), 1));
}

/** Returns whether another event may be pushed now. The limits leave room for others while one receiver is slow. */
function hasRoom({ id, stream: { owner } }: StreamSubscription): boolean {
  const ofReceiver = pushing.filter(({ stream }) => stream.owner === owner);
  const ofStream = ofReceiver.filter((one) => one.id === id);
  return (
    pushing.length < MAX_PUSHES.all && ofReceiver.length < MAX_PUSHES.receiver && ofStream.length < MAX_PUSHES.stream
  );
}

/** Makes one attempt to push an event. A failure is recorded in the status of the subscription. */
async function push(deps: StreamEventDeps, stream: StreamSubscription, sent: PendingEvent): Promise<void> {
  const { subscriptions, sender, openSecret, wallClock, events } = deps;
  const { id, endpoint = "", sealedSecret } = stream;
  try {
    const secret = sealedSecret === undefined ? "" : openSecret(sealedSecret);
    const token = await streamEventToken(sent, stream, { ...deps, now: wallClock() });
    const result = await sender.send(tokenRequest(token, { endpoint }, { secret }));
    const error: DeliveryError | undefined = result.ok ? errorOfStatus("ssf_push", result.status) : result.error;
    if (error !== undefined) await subscriptions.recordAttempt(id, { error, at: wallClock() });
  } catch (error) {
    events.onFailure(error);
  }
}
