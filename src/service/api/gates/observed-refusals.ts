import { create } from "@bufbuild/protobuf";
import type { ConnectError, HandlerContext, Interceptor, UnaryRequest } from "@connectrpc/connect";

/** Reports a call that is refused before its message is read. Returns the error for the caller. */
export type ReportRefusal = (context: HandlerContext, error: ConnectError) => ConnectError | Promise<never>;

/**
 * Passes refused calls to the interceptors that measure and trace calls. They see the request without its message, which is not read. If
 * there are no such interceptors, a call is refused synchronously, because promises would make a flood of bad credentials expensive.
 *
 * @param observers the first is the outermost
 * @param onRefused called for a refused call, inside of the observers
 */
export function observeRefusals(
  observers: readonly Interceptor[],
  onRefused: (context: HandlerContext, error: ConnectError) => void,
): ReportRefusal {
  return (context, error) => {
    onRefused(context, error);
    if (observers.length === 0) return error;
    const call = observers.reduceRight<ReturnType<Interceptor>>(
      (next, observer) => observer(next),
      () => Promise.reject(error),
    );
    return call(requestOf(context)) as Promise<never>;
  };
}

function requestOf({ method, requestMethod, url, signal, requestHeader, values }: HandlerContext): UnaryRequest {
  return {
    stream: false,
    service: method.parent,
    method: method as UnaryRequest["method"],
    requestMethod,
    url,
    signal,
    header: requestHeader,
    contextValues: values,
    message: create(method.input),
  };
}
