import { create, type DescMessage, type DescMethod, type Message, type MessageInitShape } from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  type ContextValues,
  createContextValues,
  type HandlerContext,
  type Interceptor,
} from "@connectrpc/connect";
import { HeaderMap } from "./header-map.ts";
import type { RecordedRpc } from "./recorder.ts";

type AnyFn = Parameters<Interceptor>[0];
type AnyRequest = Parameters<AnyFn>[0];
type AnyResponse = Awaited<ReturnType<AnyFn>>;

/** What a call needs to know of the request that makes it. */
export interface CallInit {
  readonly requestMethod: string;
  readonly url: string;
  readonly requestHeader: HeaderMap;
  /** Milliseconds that the caller gives the call; undefined: as long as it takes. */
  readonly timeoutMs: number | undefined;
  readonly shutdownSignal: AbortSignal | undefined;
  readonly contextValues: ContextValues | undefined;
  /** Calls back once if the client goes away before the response is complete. Returns a function that stops listening. */
  onAbort(callback: (reason: unknown) => void): () => void;
}

/** One call of one RPC: the handler's context, and the signal that exists only if somebody looks at it. */
export class Call {
  readonly context: HandlerContext;
  readonly responseHeader = new HeaderMap();
  readonly responseTrailer = new HeaderMap();
  /** The values that the implementation saw last: an interceptor may have replaced them. */
  values: ContextValues;
  readonly #init: CallInit;
  readonly #deadline: number | undefined;
  #controller: AbortController | undefined;
  #cleanup: (() => void)[] = [];
  #ended: { readonly reason: unknown } | undefined;

  constructor(method: DescMethod, init: CallInit) {
    this.#init = init;
    this.#deadline = init.timeoutMs === undefined ? undefined : Date.now() + init.timeoutMs;
    this.values = init.contextValues ?? createContextValues();
    const signal = () => this.#signal();
    this.context = {
      service: method.parent,
      method,
      requestMethod: init.requestMethod,
      protocolName: "http",
      url: init.url,
      requestHeader: init.requestHeader,
      responseHeader: this.responseHeader,
      responseTrailer: this.responseTrailer,
      values: this.values,
      timeoutMs: () => (this.#deadline === undefined ? undefined : this.#deadline - Date.now()),
      get signal() {
        return signal();
      },
    };
  }

  /** Ends the call: whoever still holds its signal sees it aborted. */
  end(reason?: unknown): void {
    if (this.#ended !== undefined) return;
    this.#ended = { reason };
    for (const clean of this.#cleanup) clean();
    this.#controller?.abort(reason);
  }

  #signal(): AbortSignal {
    if (this.#controller !== undefined) return this.#controller.signal;
    this.#controller = new AbortController();
    const { signal } = this.#controller;
    if (this.#ended !== undefined) {
      this.#controller.abort(this.#ended.reason);
      return signal;
    }
    const abort = (reason: unknown) => this.#controller?.abort(reason);
    this.#cleanup.push(this.#init.onAbort(abort));
    this.#followShutdown(abort);
    this.#followDeadline(abort);
    return signal;
  }

  #followShutdown(abort: (reason: unknown) => void): void {
    const shutdown = this.#init.shutdownSignal;
    if (shutdown === undefined) return;
    const onShutdown = () => abort(shutdown.reason);
    if (shutdown.aborted) onShutdown();
    else shutdown.addEventListener("abort", onShutdown);
    this.#cleanup.push(() => shutdown.removeEventListener("abort", onShutdown));
  }

  #followDeadline(abort: (reason: unknown) => void): void {
    if (this.#deadline === undefined) return;
    const onDeadline = () => abort(new ConnectError("the operation timed out", Code.DeadlineExceeded));
    const left = this.#deadline - Date.now();
    if (left <= 0) {
      onDeadline();
      return;
    }
    // A timer takes 31 bits; a deadline weeks ahead is none.
    const timer = setTimeout(onDeadline, Math.min(left, 2 ** 31 - 1));
    this.#cleanup.push(() => clearTimeout(timer));
  }
}

/** Calls a unary RPC under its interceptors. */
export async function callUnary({ spec, options }: RecordedRpc, call: Call, input: Message): Promise<Message> {
  if (spec.kind !== "unary") throw new Error(`${spec.method.name} is not unary`);
  const { impl, method } = spec;
  if (options.interceptors.length === 0) return create(method.output, await impl(input, call.context));
  const request: AnyRequest = Object.assign(common(call, method), { stream: false as const, message: input, method });
  const innermost = async (req: AnyRequest): Promise<AnyResponse> => {
    if (req.stream) throw new Error("an interceptor turned a unary request into a stream");
    const output = await impl(req.message, contextFor(call, request, req));
    return { stream: false, message: create(method.output, output), method, ...answer(call, method) };
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
  const messages = once(input);
  const request: AnyRequest = Object.assign(common(call, method), { stream: true as const, message: messages, method });
  const innermost = async (req: AnyRequest): Promise<AnyResponse> => {
    if (!req.stream) throw new Error("an interceptor turned a stream into a unary request");
    const output = impl(await single(req.message), contextFor(call, request, req));
    return { stream: true, message: normalized(method, output), method, ...answer(call, method) };
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

/** Not to be spread: that would read the signal. */
function common(call: Call, method: DescMethod): Omit<AnyRequest, "stream" | "message" | "method"> {
  const { context } = call;
  return {
    service: method.parent,
    requestMethod: context.requestMethod,
    url: context.url,
    header: context.requestHeader,
    contextValues: context.values,
    // An own property, so that it survives `{...req}`; a getter, so that nobody pays who does not look.
    get signal() {
      return context.signal;
    },
  };
}

function answer(call: Call, method: DescMethod): Omit<AnyResponse, "stream" | "message" | "method"> {
  return { service: method.parent, header: call.responseHeader, trailer: call.responseTrailer };
}

/** The implementation's context: what interceptors changed in the request shows in it. */
function contextFor(call: Call, original: AnyRequest, req: AnyRequest): HandlerContext {
  if (req === original) return call.context;
  call.values = req.contextValues;
  const { method, requestMethod, protocolName, url, responseHeader, responseTrailer, timeoutMs } = call.context;
  return {
    service: req.service,
    method,
    requestMethod,
    protocolName,
    url,
    requestHeader: req.header,
    responseHeader,
    responseTrailer,
    values: req.contextValues,
    timeoutMs,
    get signal() {
      return req.signal;
    },
  };
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
