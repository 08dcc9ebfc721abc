import type { DescMethod, DescService, Message } from "@bufbuild/protobuf";
import {
  type ConnectError,
  type ContextValues,
  createContextValues,
  type HandlerContext,
  type StreamRequest,
  type UnaryRequest,
} from "@connectrpc/connect";
import { parseTimeout as parseConnectTimeout } from "@connectrpc/connect/protocol-connect";
import { parseTimeout as parseGrpcTimeout } from "@connectrpc/connect/protocol-grpc";
import { BadInput } from "../codec/bad-input.ts";
import { timedOut } from "./errors.ts";
import type { Exchange } from "./exchange.ts";
import { HeaderMap } from "./header-map.ts";

const ofCall: unique symbol = Symbol("call");

/**
 * The descriptor of `signal` on a call. It is an own property, so that it survives `{...request}`, and a getter, so that the signal is
 * created on first use. All calls share it, because one getter per object costs more than a small request.
 */
const lazySignal: PropertyDescriptor & ThisType<{ readonly [ofCall]: Call }> = {
  enumerable: true,
  configurable: true,
  get() {
    return this[ofCall].abortSignal();
  },
};

/** Returns the request that the interceptors of a call receive. */
export function requestOf(call: Call, stream: false, message: Message): UnaryRequest;
export function requestOf(call: Call, stream: true, message: AsyncIterable<Message>): StreamRequest;
export function requestOf(call: Call, stream: boolean, message: Message | AsyncIterable<Message>): object {
  const { service, method, requestMethod, url, requestHeader: header, values: contextValues } = call;
  const own = { stream, message, method, service, requestMethod, url, header, contextValues, [ofCall]: call };
  return Object.defineProperty(own, "signal", lazySignal);
}

/** Finished calls abort their signal with this reason, as in connect-es. They share it, because creating one is expensive. */
const END_OF_CALL = new DOMException("This operation was aborted", "AbortError");

interface CallOptions {
  /** The name of the protocol for interceptors. Default: `http`. */
  readonly protocolName?: string;
  /** The timeout of the call in milliseconds; undefined for none. */
  readonly timeoutMs: number | undefined;
  readonly shutdownSignal: AbortSignal | undefined;
  readonly contextValues: ContextValues | undefined;
}

/** One call of one RPC. The implementation receives it as its context. */
export class Call implements HandlerContext {
  readonly service: DescService;
  readonly method: DescMethod;
  readonly protocolName: string;
  readonly requestMethod: string;
  readonly url: string;
  readonly requestHeader: Headers;
  readonly responseHeader = new HeaderMap();
  readonly responseTrailer = new HeaderMap();
  readonly values: ContextValues;
  readonly timeoutMs: () => number | undefined;
  readonly [ofCall]: Call = this;
  /** The context values that the implementation received. They differ from `values` if an interceptor replaced them. */
  lastValues: ContextValues;
  readonly #exchange: Exchange<unknown>;
  readonly #shutdown: AbortSignal | undefined;
  readonly #deadline: number | undefined;
  #controller: AbortController | undefined;
  #cleanup: (() => void)[] | undefined;
  #ended = false;
  #reason: unknown;

  constructor(method: DescMethod, exchange: Exchange<unknown>, options: CallOptions) {
    const { timeoutMs } = options;
    // Clients of gRPC send microseconds. Handlers get whole milliseconds, as in connect-node.
    const deadline = timeoutMs === undefined ? undefined : Math.trunc(monotonicMs() + timeoutMs);
    this.service = method.parent;
    this.method = method;
    this.protocolName = options.protocolName ?? "http";
    this.requestMethod = exchange.method;
    this.url = exchange.url;
    this.requestHeader = exchange.headers;
    this.values = options.contextValues ?? createContextValues();
    this.timeoutMs = deadline === undefined ? noTimeout : () => deadline - monotonicMs();
    this.lastValues = this.values;
    this.#exchange = exchange;
    this.#shutdown = options.shutdownSignal;
    this.#deadline = deadline;
  }

  get signal(): AbortSignal {
    return this.abortSignal();
  }

  /** Makes `signal` an own property, because the implementation may copy the call. Calls that `requestGate` refuses do not need it. */
  exposeSignal(): void {
    Object.defineProperty(this, "signal", lazySignal);
  }

  /** Ends the call and aborts its signal. */
  end(reason?: unknown): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#reason = reason ?? END_OF_CALL;
    for (const clean of this.#cleanup ?? []) clean();
    this.#controller?.abort(this.#reason);
  }

  /** Returns the context for the implementation of a call whose request an interceptor has changed. */
  changedBy(request: UnaryRequest | StreamRequest): HandlerContext {
    this.lastValues = request.contextValues;
    const { service, header: requestHeader, contextValues: values, signal } = request;
    return { ...this, service, requestHeader, values, signal };
  }

  abortSignal(): AbortSignal {
    if (this.#controller !== undefined) return this.#controller.signal;
    this.#controller = new AbortController();
    const abort = (reason: unknown) => this.#controller?.abort(reason);
    if (this.#ended) abort(this.#reason);
    else
      this.#cleanup = [this.#exchange.onAbort(abort), followSignal(this.#shutdown, abort), this.#followDeadline(abort)];
    return this.#controller.signal;
  }

  #followDeadline(abort: (reason: unknown) => void): () => void {
    if (this.#deadline === undefined) return nothing;
    const left = this.#deadline - monotonicMs();
    const onDeadline = () => abort(timedOut());
    if (left <= 0) {
      onDeadline();
      return nothing;
    }
    // A timer takes at most 2^31 - 1 ms (25 days). For a longer time it would fire at once.
    const timer = setTimeout(onDeadline, Math.min(left, 2 ** 31 - 1));
    return () => clearTimeout(timer);
  }
}

function followSignal(signal: AbortSignal | undefined, abort: (reason: unknown) => void): () => void {
  if (signal === undefined) return nothing;
  const onAbort = () => abort(signal.reason);
  if (signal.aborted) onAbort();
  else signal.addEventListener("abort", onAbort);
  return () => signal.removeEventListener("abort", onAbort);
}

/** Returns whole milliseconds of a monotonic clock, so that setting the machine's clock does not change the time that remains. */
const monotonicMs = () => Math.trunc(performance.now());

const nothing = () => {};
const noTimeout = () => undefined;

type Parsed = {
  readonly timeoutMs?: number | undefined;
  readonly error?: Pick<ConnectError, "rawMessage"> | undefined;
};

/**
 * Reads the timeout of a call, in milliseconds, from `Connect-Timeout-Ms` (milliseconds), `Grpc-Timeout` (up to eight digits and a unit)
 * or `X-Server-Timeout` (seconds). Returns undefined if there is none.
 * @param maxMs the longest timeout allowed, as `maxTimeoutMs` in connect-es
 * @throws BadInput
 */
export function readTimeout(headers: HeaderMap, maxMs: number): number | undefined {
  for (const [name, parse] of PARSERS) {
    const value = headers.get(name);
    if (value === null) continue;
    const { timeoutMs, error } = parse(value, maxMs);
    if (error !== undefined) throw new BadInput("header", name, error.rawMessage);
    return timeoutMs;
  }
  return undefined;
}

/** The parsers of connect-es for its own headers, and a parser for the header of Google's API gateways. */
const PARSERS: readonly (readonly [name: string, parse: (value: string, maxMs: number) => Parsed])[] = [
  ["connect-timeout-ms", parseConnectTimeout],
  ["grpc-timeout", parseGrpcTimeout],
  ["x-server-timeout", parseServerTimeout],
];

function parseServerTimeout(value: string, maxMs: number): Parsed {
  if (!/^\d{1,10}(?:\.\d{1,9})?$/.test(value)) return { error: { rawMessage: `invalid timeout "${value}"` } };
  const timeoutMs = Number(value) * 1_000;
  return timeoutMs > maxMs ? { error: { rawMessage: `timeout ${timeoutMs}ms must be <= ${maxMs}` } } : { timeoutMs };
}
