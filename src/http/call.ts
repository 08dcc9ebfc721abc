import {
  create,
  type DescMessage,
  type DescMethod,
  type DescMethodStreaming,
  type DescMethodUnary,
  type DescService,
  type Message,
  type MessageInitShape,
} from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  type ContextValues,
  createContextValues,
  type HandlerContext,
  type Interceptor,
  type StreamRequest,
  type UnaryRequest,
} from "@connectrpc/connect";
import type { Exchange } from "./exchange.ts";
import { HeaderMap } from "./header-map.ts";
import type { RecordedRpc } from "./recorder.ts";

type AnyFn = Parameters<Interceptor>[0];
type AnyRequest = Parameters<AnyFn>[0];
type AnyResponse = Awaited<ReturnType<AnyFn>>;

const ofCall = Symbol("call");

/**
 * An own property, so that it survives `{...request}`; a getter, so that a signal is made only if somebody looks; one
 * getter for all, since a getter per object costs more than a small request.
 */
const lazySignal: PropertyDescriptor & ThisType<{ readonly [ofCall]: Call }> = {
  enumerable: true,
  configurable: true,
  get() {
    return this[ofCall].abortSignal();
  },
};

/** connect-es aborts the signal of a call that has ended with an error like this one, made anew: that takes a while. */
const endOfCall = new DOMException("This operation was aborted", "AbortError");

export interface CallOptions {
  /** Milliseconds that the caller gives the call; undefined: as long as it takes. */
  readonly timeoutMs: number | undefined;
  readonly shutdownSignal: AbortSignal | undefined;
  readonly contextValues: ContextValues | undefined;
}

/** One call of one RPC. It is the context that the implementation gets. */
export class Call implements HandlerContext {
  readonly service: DescService;
  readonly method: DescMethod;
  readonly protocolName = "http";
  readonly requestMethod: string;
  readonly url: string;
  readonly requestHeader: Headers;
  readonly responseHeader = new HeaderMap();
  readonly responseTrailer = new HeaderMap();
  readonly values: ContextValues;
  readonly timeoutMs: () => number | undefined;
  declare readonly signal: AbortSignal;
  readonly [ofCall]: Call = this;
  /** The values that the implementation saw: an interceptor may have replaced them. */
  #lastValues: ContextValues;
  readonly #exchange: Exchange<unknown>;
  readonly #shutdown: AbortSignal | undefined;
  readonly #deadline: number | undefined;
  #controller: AbortController | undefined;
  #cleanup: (() => void)[] | undefined;
  #ended = false;
  #reason: unknown;

  constructor(method: DescMethod, exchange: Exchange<unknown>, options: CallOptions) {
    const { timeoutMs } = options;
    const deadline = timeoutMs === undefined ? undefined : Date.now() + timeoutMs;
    this.service = method.parent;
    this.method = method;
    this.requestMethod = exchange.method;
    this.url = exchange.url;
    this.requestHeader = exchange.headers;
    this.values = options.contextValues ?? createContextValues();
    this.timeoutMs = deadline === undefined ? noTimeout : () => deadline - Date.now();
    Object.defineProperty(this, "signal", lazySignal);
    this.#lastValues = this.values;
    this.#exchange = exchange;
    this.#shutdown = options.shutdownSignal;
    this.#deadline = deadline;
  }

  /** Ends the call: whoever still holds its signal sees it aborted. */
  end(reason?: unknown): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#reason = reason ?? endOfCall;
    for (const clean of this.#cleanup ?? []) clean();
    this.#controller?.abort(this.#reason);
  }

  /** The values that the implementation got. */
  get lastValues(): ContextValues {
    return this.#lastValues;
  }

  /** The context for an implementation whose request is not the original one: what interceptors changed shows in it. */
  changedBy(request: AnyRequest): HandlerContext {
    this.#lastValues = request.contextValues;
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
    const left = this.#deadline - Date.now();
    const onDeadline = () => abort(new ConnectError("the operation timed out", Code.DeadlineExceeded));
    if (left <= 0) onDeadline();
    // A timer takes 31 bits; a deadline weeks ahead is none.
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

const nothing = () => {};
const noTimeout = () => undefined;

/** What interceptors get: the parts that a unary request and a stream have in common. */
class CallRequest {
  readonly service: DescService;
  readonly requestMethod: string;
  readonly url: string;
  readonly header: Headers;
  readonly contextValues: ContextValues;
  declare readonly signal: AbortSignal;
  readonly [ofCall]: Call;

  constructor(call: Call) {
    this.service = call.service;
    this.requestMethod = call.requestMethod;
    this.url = call.url;
    this.header = call.requestHeader;
    this.contextValues = call.values;
    this[ofCall] = call;
    Object.defineProperty(this, "signal", lazySignal);
  }
}

class CallUnaryRequest extends CallRequest implements UnaryRequest {
  readonly stream = false;
  readonly message: Message;
  readonly method: DescMethodUnary;

  constructor(call: Call, method: DescMethodUnary, message: Message) {
    super(call);
    this.message = message;
    this.method = method;
  }
}

class CallStreamRequest extends CallRequest implements StreamRequest {
  readonly stream = true;
  readonly message: AsyncIterable<Message>;
  readonly method: DescMethodStreaming;

  constructor(call: Call, method: DescMethodStreaming, message: AsyncIterable<Message>) {
    super(call);
    this.message = message;
    this.method = method;
  }
}

/** Calls a unary RPC under its interceptors. */
export async function callUnary({ spec, options }: RecordedRpc, call: Call, input: Message): Promise<Message> {
  if (spec.kind !== "unary") throw new Error(`${spec.method.name} is not unary`);
  const { impl, method } = spec;
  if (options.interceptors.length === 0) return create(method.output, await impl(input, call));
  const request = new CallUnaryRequest(call, method, input);
  const innermost = async (req: AnyRequest): Promise<AnyResponse> => {
    if (req.stream) throw new Error("an interceptor turned a unary request into a stream");
    const output = await impl(req.message, req === request ? call : call.changedBy(req));
    const message = create(method.output, output);
    return {
      stream: false,
      message,
      method,
      service: method.parent,
      header: call.responseHeader,
      trailer: call.responseTrailer,
    };
  };
  const response = await intercept(innermost, options.interceptors)(request);
  takeHeaders(response, call);
  if (response.stream) throw new Error("an interceptor turned a unary response into a stream");
  return response.message;
}

/** Calls a server-streaming RPC under its interceptors. */
export async function callServerStreaming(
  { spec, options }: RecordedRpc,
  call: Call,
  input: Message,
): Promise<AsyncIterable<Message>> {
  if (spec.kind !== "server_streaming") throw new Error(`${spec.method.name} is not server-streaming`);
  const { impl, method } = spec;
  const request = new CallStreamRequest(call, method, once(input));
  const innermost = async (req: AnyRequest): Promise<AnyResponse> => {
    if (!req.stream) throw new Error("an interceptor turned a stream into a unary request");
    const output = impl(await single(req.message), req === request ? call : call.changedBy(req));
    const message = normalized(method, output);
    return {
      stream: true,
      message,
      method,
      service: method.parent,
      header: call.responseHeader,
      trailer: call.responseTrailer,
    };
  };
  const response = await intercept(innermost, options.interceptors)(request);
  takeHeaders(response, call);
  if (!response.stream) throw new Error("an interceptor turned a stream into a unary response");
  return response.message;
}

/** Interceptors are made anew for each call, the last of the list innermost, as connect-es does. */
function intercept(innermost: AnyFn, interceptors: readonly Interceptor[]): AnyFn {
  let next = innermost;
  for (let i = interceptors.length - 1; i >= 0; i--) next = interceptors[i]?.(next) ?? next;
  return next;
}

/** An interceptor may answer with headers of its own. Appended one by one: `set` would keep one Set-Cookie of two. */
function takeHeaders(response: AnyResponse, call: Call): void {
  replace(call.responseHeader, response.header);
  replace(call.responseTrailer, response.trailer);
}

function replace(into: HeaderMap, from: Headers): void {
  if (into === from) return;
  const entries = [...from];
  for (const name of [...into.keys()]) into.delete(name);
  for (const [name, value] of entries) into.append(name, value);
}

async function* once(message: Message): AsyncIterable<Message> {
  yield message;
}

async function single(messages: AsyncIterable<Message>): Promise<Message> {
  let only: Message | undefined;
  for await (const message of messages) {
    if (only !== undefined) throw new ConnectError("more than one request message", Code.Unimplemented);
    only = message;
  }
  if (only === undefined) throw new ConnectError("no request message", Code.Unimplemented);
  return only;
}

async function* normalized(
  method: DescMethod,
  messages: AsyncIterable<MessageInitShape<DescMessage>>,
): AsyncIterable<Message> {
  for await (const message of messages) yield create(method.output, message);
}
