import { Code, ConnectError, type HandlerContext, type Interceptor } from "@connectrpc/connect";
import { codeToString } from "@connectrpc/connect/protocol-connect";
import type { Metrics } from "./metrics.ts";

/**
 * Measures the duration and the code of every call on every protocol. A stream is measured when it ends, and counts as open until then.
 * This must be the first interceptor, so that it gets the same errors as callers.
 */
export function measure(metrics: Pick<Metrics, "handled" | "streamOpened" | "streamClosed">): Interceptor {
  return (next) => async (request) => {
    const startMs = performance.now();
    const { name } = request.method;
    let code = "ok";
    let streaming = false;
    try {
      const response = await next(request);
      if (!response.stream) return response;
      streaming = true;
      metrics.streamOpened(name);
      const onEnd = (end: string) => {
        metrics.streamClosed(name);
        metrics.handled(name, end, (performance.now() - startMs) / 1000);
      };
      return { ...response, message: observed(response.message, request.signal, onEnd) };
    } catch (error) {
      code = codeOf(error);
      throw error;
    } finally {
      if (!streaming) metrics.handled(name, code, (performance.now() - startMs) / 1000);
    }
  };
}

/** Counts a call that was refused before its message was read. Its duration would be too short to be visible in a histogram. */
export function measureRefused(
  metrics: Pick<Metrics, "handled">,
): (context: HandlerContext, error: ConnectError) => void {
  return ({ method }, { code }) => metrics.handled(method.name, nameOf(code), 0);
}

const names = new Map<Code, string>();

/** Returns the name of a code, such as `not_found`. Connect builds it anew each time, and a flood of refused calls needs it for each. */
function nameOf(code: Code): string {
  let name = names.get(code);
  if (name === undefined) {
    name = codeToString(code);
    names.set(code, name);
  }
  return name;
}

const codeOf = (error: unknown) => nameOf(ConnectError.from(error).code);

/** Passes on the messages, and calls `onEnd` once with the stream's code, when it ends, fails or is aborted. */
function observed<T>(messages: AsyncIterable<T>, signal: AbortSignal, onEnd: (code: string) => void): AsyncIterable<T> {
  let ended = false;
  const end = (code: string) => {
    if (ended) return;
    ended = true;
    onEnd(code);
  };
  // A stream may be aborted before its first message is read. No iterator is notified of that.
  const onAbort = () => end(codeOfAbort(signal));
  signal.addEventListener("abort", onAbort, { once: true });
  return {
    [Symbol.asyncIterator]() {
      signal.removeEventListener("abort", onAbort);
      const iterator = messages[Symbol.asyncIterator]();
      return {
        async next() {
          try {
            const result = await iterator.next();
            if (result.done) end(signal.aborted ? codeOfAbort(signal) : "ok");
            return result;
          } catch (error) {
            end(codeOf(error));
            throw error;
          }
        },
        async throw(error) {
          end(codeOfAbort(signal));
          if (iterator.throw !== undefined) return iterator.throw(error);
          await iterator.return?.();
          throw error;
        },
        async return(value?: unknown) {
          end(codeOfAbort(signal));
          return (await iterator.return?.(value)) ?? { done: true, value };
        },
      };
    },
  };
}

/** Returns the code of an abort: that of Connect's reason, such as a deadline. Any other reason means that the caller disconnected. */
function codeOfAbort({ reason }: AbortSignal): string {
  return reason instanceof ConnectError ? codeOf(reason) : nameOf(Code.Canceled);
}
