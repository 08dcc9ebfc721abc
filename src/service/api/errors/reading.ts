/**
 * Records whether the message of a call is being read. Connect raises errors of a message with the same codes as errors of the service. An
 * error that is raised after the check of the credential and before the first interceptor is an error of the message, because only the
 * message is read in between.
 */
import { type ContextValues, createContextKey } from "@connectrpc/connect";

const reading = createContextKey(false, { description: "the message is being read" });

/** Called when a call has passed the checks that precede its message, such as that of the credential. The message is read next. */
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
