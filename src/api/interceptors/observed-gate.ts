import { create } from "@bufbuild/protobuf";
import type { HandlerContext, Interceptor, UnaryRequest } from "@connectrpc/connect";

/** Returns a promise only if it refuses the call; the promise then rejects. */
type RefusingGate = (context: HandlerContext) => Promise<never> | undefined;

/**
 * Shows refused calls to the interceptors that observe. A refused call reaches no interceptor, but must be measured and traced like any
 * other. The observers see the request without its message, which is not read.
 *
 * @param observers the first is the outermost
 */
export function observedGate(observers: readonly Interceptor[], gate: RefusingGate): RefusingGate {
  return (context) => {
    const refused = gate(context);
    if (refused === undefined) return undefined;
    const call = observers.reduceRight<ReturnType<Interceptor>>(
      (next, observer) => observer(next),
      () => refused,
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
