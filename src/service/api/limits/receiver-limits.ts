/**
 * Limits what receivers of SSF streams can make the service do. They are other parties with a credential of their own: what they ask for
 * sends requests to servers of their choice, signs tokens, or changes all partitions of the store.
 */
import { createRateLimit } from "./rate-limit.ts";

/** Each poll may sign a hundred tokens again that the receiver does not acknowledge. */
const POLL_RATE = { count: 200, windowMs: 10_000 };
/** Each new stream, and each change of a stream's status, may write to all partitions of the store. */
const CHANGE_RATE = { count: 120, windowMs: 60_000 };

/**
 * @param verificationIntervalMs how much time must pass between two verification events of a stream, in ms; 0 for none
 * @param maxStreams how many streams a receiver may have
 */
export function createReceiverLimits(verificationIntervalMs: number, maxStreams: number) {
  return {
    verificationLimit: createVerificationLimit(verificationIntervalMs, maxStreams),
    pollLimit: createRateLimit(POLL_RATE),
    changeLimit: createRateLimit(CHANGE_RATE),
  };
}

/** A stream that is deleted and created anew has another id. So a receiver, too, has a limit: one event for each stream it may have. */
function createVerificationLimit(windowMs: number, maxStreams: number) {
  const ofStreams = createRateLimit({ count: 1, windowMs });
  const ofReceivers = createRateLimit({ count: maxStreams, windowMs });
  return {
    take(stream: string, receiver: string): number | undefined {
      const waitMs = ofReceivers.take(receiver);
      if (waitMs !== undefined) return waitMs;
      const ofStream = ofStreams.take(stream);
      if (ofStream !== undefined) ofReceivers.giveBack(receiver);
      return ofStream;
    },
    giveBack(stream: string, receiver: string): void {
      ofStreams.giveBack(stream);
      ofReceivers.giveBack(receiver);
    },
  };
}
