/**
 * Measures every call, and makes its errors those of docs/reference/errors.md. The place where an error is raised decides whose fault it
 * is, because Connect raises errors of callers with the same codes as bugs.
 */
import type { DescMethod } from "@bufbuild/protobuf";
import { Code, ConnectError, type ConnectRouter, type ContextValues, type HandlerContext } from "@connectrpc/connect";
import { codeToString } from "@connectrpc/connect/protocol-connect";
import { StoreBusy, StoreUnavailable } from "../session/ports.ts";
import { aborted, errorCodeOf, faultOfCaller, SHARED_ERRORS, toConnectError } from "./errors/connect-errors.ts";
import { RequestContext } from "./request-context.ts";
import { changedRouter, type Implementation } from "./router.ts";

/** Receives the failures that need an operator or a fix. */
export type FailureReports = {
  readonly onBug: (error: unknown, method: string, values?: ContextValues) => void;
  readonly onUnavailable: (error: StoreUnavailable) => void;
};

type CallMetrics = {
  /** Records the end of a call. A unary call ends with its response, a stream with its last message. */
  handled(method: string, code: string, seconds: number): void;
  streamOpened(method: string): void;
  streamClosed(method: string): void;
};

type Parts = { readonly metrics: CallMetrics; readonly reports: FailureReports };

/** Returns a router whose RPCs are measured, and fail only with errors of docs/reference/errors.md. */
export function withOutcomes(router: ConnectRouter, parts: Parts): ConnectRouter {
  return changedRouter(router, (method, implementation, options) => {
    const change = method.methodKind === "unary" ? unary : stream;
    return { implementation: change(method, implementation, parts), options };
  });
}

function unary({ name }: DescMethod, implementation: Implementation, { metrics, reports }: Parts): Implementation {
  return async (request, context) => {
    const startMs = performance.now();
    const { values } = context;
    if (values instanceof RequestContext) values.isReading = false;
    let code = "ok";
    try {
      return await implementation(request, context);
    } catch (error) {
      const translated = translate(error, context, reports);
      code = nameOf(translated.code);
      throw translated;
    } finally {
      metrics.handled(name, code, (performance.now() - startMs) / 1000);
    }
  };
}

/** The messages of a request stream, as of reflection, are read by the implementation itself, so their errors are raised within it. */
function stream(method: DescMethod, implementation: Implementation, { metrics, reports }: Parts): Implementation {
  const { name } = method;
  return (request, context) => {
    const startMs = performance.now();
    const end = (code: string) => metrics.handled(name, code, (performance.now() - startMs) / 1000);
    const translateOf = (error: unknown) => translate(error, context, reports);
    const { values } = context;
    if (values instanceof RequestContext) values.isReading = false;
    const messages = () => {
      try {
        return implementation(isStream(request) ? fromCaller(request) : request, context) as AsyncIterable<unknown>;
      } catch (error) {
        const translated = translateOf(error);
        end(nameOf(translated.code));
        throw translated;
      }
    };
    const opened = messages();
    metrics.streamOpened(name);
    return observed(translatedStream(opened, translateOf), context.signal, (code) => {
      metrics.streamClosed(name);
      end(code);
    });
  };
}

function translate(error: unknown, context: HandlerContext, { onBug, onUnavailable }: FailureReports): ConnectError {
  if (error instanceof StoreUnavailable && !(error instanceof StoreBusy)) onUnavailable(error);
  // If the error has a code of docs/reference/errors.md already, the signal is not read: the first read creates it, which takes as long as
  // a small request.
  if (error instanceof ConnectError && errorCodeOf(error) !== undefined) return error;
  if (error instanceof ConnectError && error === context.signal.reason) return aborted(error);
  return toConnectError(error, (bug) => onBug(bug, context.method.name, context.values));
}

/** Counts a call that was refused before its message was read. Its duration would be too short to be visible in a histogram. */
export function measureRefused({ handled }: CallMetrics): (context: HandlerContext, error: ConnectError) => void {
  return ({ method }, { code }) => handled(method.name, nameOf(code), 0);
}

const CODES = Object.values(Code).filter((code) => typeof code === "number");
/** The names of codes, such as `not_found`. Connect builds one anew each time, and a flood of refused calls needs it for each. */
const NAMES = new Map(CODES.map((code) => [code, codeToString(code)]));

const nameOf = (code: Code) => NAMES.get(code) ?? "unknown";

const codeOf = (error: unknown) => nameOf(ConnectError.from(error).code);

const isStream = (request: unknown): request is AsyncIterable<unknown> =>
  typeof request === "object" && request !== null && Symbol.asyncIterator in request;

/** Yields the messages of a streamed request. Errors while reading them are the caller's. */
async function* fromCaller<T>(messages: AsyncIterable<T>) {
  const iterator = messages[Symbol.asyncIterator]();
  try {
    for (let next = await read(iterator); !next.done; next = await read(iterator)) yield next.value;
  } finally {
    await iterator.return?.();
  }
}

async function read<T>(messages: AsyncIterator<T>): Promise<IteratorResult<T>> {
  try {
    return await messages.next();
  } catch (error) {
    throw faultOfCaller(error);
  }
}

async function* translatedStream<T>(messages: AsyncIterable<T>, translateOf: (error: unknown) => ConnectError) {
  let isBeingSent = false;
  try {
    for await (const message of messages) {
      isBeingSent = true;
      yield message;
      isBeingSent = false;
    }
  } catch (error) {
    // The error was raised while a message was sent, which means that the caller has disconnected.
    throw isBeingSent ? SHARED_ERRORS.canceled : translateOf(error);
  }
}

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
