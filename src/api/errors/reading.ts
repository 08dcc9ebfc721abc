/**
 * Records whether the message of a call is being read. Connect raises errors of a message with the same codes as errors of the service. An
 * error between the request gate and the first interceptor is an error of the message, because nothing else happens in between.
 */
import { type ContextValues, createContextKey } from "@connectrpc/connect";

const reading = createContextKey(false, { description: "the message is being read" });

/** Called when the request gate has passed the call. Its message is read next. */
export function beginReading(values: ContextValues): void {
  values.set(reading, true);
}

/** Called when the message has been read. The messages of a stream are read by the handler itself. */
export function endReading(values: ContextValues): void {
  values.set(reading, false);
}

export function isReading(values: ContextValues | undefined): boolean {
  return values?.get(reading) === true;
}
