/**
 * Where a call stands: Connect raises what is wrong with a message with the same codes, or none, as what is wrong with the service. Between
 * the request gate and the first interceptor nothing runs but Connect's reader of the message.
 */
import { type ContextValues, createContextKey } from "@connectrpc/connect";

const reading = createContextKey(false, { description: "the message is being read" });

/** The request gate has passed the call: its message is read next. */
export function beginReading(values: ContextValues): void {
  values.set(reading, true);
}

/** The message has been read, or is read by the call itself, as a stream. */
export function endReading(values: ContextValues): void {
  values.set(reading, false);
}

export function isReading(values: ContextValues | undefined): boolean {
  return values?.get(reading) === true;
}
