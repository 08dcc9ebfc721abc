import { Code, ConnectError } from "@connectrpc/connect";
import { type Context, context } from "@opentelemetry/api";

/**
 * Passes on the messages of a stream, and awaits each in the context `own`. When the stream ends, fails, is aborted or its reader stops,
 * `onEnd` is called once, with the error or undefined.
 */
export function observed<T>(
  messages: AsyncIterable<T>,
  signal: AbortSignal,
  own: Context,
  onEnd: (error: ConnectError | undefined) => void,
): AsyncIterable<T> {
  let ended = false;
  const end = (error: ConnectError | undefined) => {
    if (ended) return;
    ended = true;
    signal.removeEventListener("abort", onAbort);
    onEnd(error);
  };
  // A stream may be aborted before its first message is read, or between two messages. No iterator is notified of that.
  const onAbort = () => end(abortOf(signal));
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();
  return {
    [Symbol.asyncIterator]() {
      const iterator = messages[Symbol.asyncIterator]();
      return {
        async next() {
          try {
            const result = await context.with(own, () => iterator.next());
            if (result.done) end(undefined);
            return result;
          } catch (error) {
            end(ConnectError.from(error, Code.Internal));
            throw error;
          }
        },
        async return(value?: unknown) {
          const result = (await iterator.return?.(value)) ?? { done: true as const, value };
          end(abortOf(signal));
          return result;
        },
        async throw(error?: unknown) {
          end(ConnectError.from(error, Code.Internal));
          if (iterator.throw !== undefined) return iterator.throw(error);
          await iterator.return?.();
          throw error;
        },
      };
    },
  };
}

/** Returns the code of an abort. Connect gives its own reason, such as the deadline. Any other reason means that the reader stopped. */
function abortOf({ reason }: AbortSignal): ConnectError {
  return reason instanceof ConnectError ? reason : new ConnectError("canceled", Code.Canceled);
}
