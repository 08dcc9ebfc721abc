import { create, type DescMessage, type DescMethod, type Message, type MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError, type HandlerContext, type Interceptor } from "@connectrpc/connect";
import { type Call, requestOf } from "./call.ts";
import type { HeaderMap } from "./header-map.ts";
import type { RecordedRpc } from "./recorder.ts";

type AnyFn = Parameters<Interceptor>[0];
type AnyRequest = Parameters<AnyFn>[0];
type AnyResponse = Awaited<ReturnType<AnyFn>>;

/** Calls a unary RPC through its interceptors. @returns what it returned; a message if there are interceptors */
export function callUnary({ spec, options }: RecordedRpc, call: Call, input: Message) {
  if (spec.kind !== "unary") throw new Error(`${spec.method.name} is not unary`);
  return options.interceptors.length === 0 ? spec.impl(input, call) : callIntercepted(spec, options, call, input);
}

type UnarySpec = Extract<RecordedRpc["spec"], { readonly kind: "unary" }>;

async function callIntercepted(
  { impl, method }: UnarySpec,
  options: RecordedRpc["options"],
  call: Call,
  input: Message,
): Promise<Message> {
  const request = requestOf(call, false, input);
  const innermost = async (req: AnyRequest): Promise<AnyResponse> => {
    if (req.stream) throw new Error("an interceptor turned a unary request into a stream");
    const output = await impl(req.message, req === request ? call : call.changedBy(req));
    const { responseHeader: header, responseTrailer: trailer } = call;
    return { stream: false, message: create(method.output, output), method, service: method.parent, header, trailer };
  };
  const response = await callThrough(options.interceptors, call, request, innermost);
  if (response.stream) throw new Error("an interceptor turned a unary response into a stream");
  return response.message;
}

/** Calls a server-streaming RPC through its interceptors. */
export function callServerStreaming(rpc: RecordedRpc, call: Call, input: Message): Promise<AsyncIterable<Message>> {
  return callStreaming(rpc, call, once(input));
}

/** Calls a client-streaming RPC through its interceptors. */
export async function callClientStreaming(
  rpc: RecordedRpc,
  call: Call,
  inputs: AsyncIterable<Message>,
): Promise<Message> {
  return single(await callStreaming(rpc, call, inputs), "response");
}

/** Calls a streaming RPC through its interceptors. */
export async function callStreaming(
  { spec, options }: RecordedRpc,
  call: Call,
  inputs: AsyncIterable<Message>,
): Promise<AsyncIterable<Message>> {
  if (spec.kind === "unary") throw new Error(`${spec.method.name} is unary`);
  const { method } = spec;
  const request = requestOf(call, true, inputs);
  const innermost = async (req: AnyRequest): Promise<AnyResponse> => {
    if (!req.stream) throw new Error("an interceptor turned a stream into a unary request");
    const message = await outputOf(spec, req.message, req === request ? call : call.changedBy(req));
    const { responseHeader: header, responseTrailer: trailer } = call;
    return { stream: true, message, method, service: method.parent, header, trailer };
  };
  const response = await callThrough(options.interceptors, call, request, innermost);
  if (!response.stream) throw new Error("an interceptor turned a stream into a unary response");
  return response.message;
}

type StreamingSpec = Exclude<RecordedRpc["spec"], { readonly kind: "unary" }>;

/** Turns the output of an implementation into a stream. */
async function outputOf(
  spec: StreamingSpec,
  inputs: AsyncIterable<Message>,
  context: HandlerContext,
): Promise<AsyncIterable<Message>> {
  switch (spec.kind) {
    case "server_streaming":
      return normalized(spec.method, spec.impl(await single(inputs, "request"), context));
    case "bidi_streaming":
      return normalized(spec.method, spec.impl(inputs, context));
    case "client_streaming":
      return deferred(spec.method, () => spec.impl(inputs, context));
  }
}

/** Calls through the interceptors, which are applied anew for each call. The last one is the innermost, as in connect-es. */
async function callThrough(
  interceptors: readonly Interceptor[],
  call: Call,
  request: AnyRequest,
  innermost: AnyFn,
): Promise<AnyResponse> {
  let next = innermost;
  for (let i = interceptors.length - 1; i >= 0; i--) next = interceptors[i]?.(next) ?? next;
  const response = await next(request);
  if (response.header !== call.responseHeader) replace(call.responseHeader, response.header);
  if (response.trailer !== call.responseTrailer) replace(call.responseTrailer, response.trailer);
  return response;
}

/** Copies the headers that an interceptor has replaced. It uses `append`, because `set` would drop all but one Set-Cookie. */
function replace(into: HeaderMap, from: Headers): void {
  const entries = [...from];
  for (const name of [...into.keys()]) into.delete(name);
  for (const [name, value] of entries) into.append(name, value);
}

export async function* once(message: Message): AsyncGenerator<Message> {
  yield message;
}

async function single(messages: AsyncIterable<Message>, what: "request" | "response"): Promise<Message> {
  let only: Message | undefined;
  for await (const message of messages) {
    if (only !== undefined) throw new ConnectError(`more than one ${what} message`, Code.Unimplemented);
    only = message;
  }
  if (only === undefined) throw new ConnectError(`no ${what} message`, Code.Unimplemented);
  return only;
}

async function* deferred(
  method: DescMethod,
  respond: () => Promise<MessageInitShape<DescMessage>>,
): AsyncIterable<Message> {
  yield create(method.output, await respond());
}

async function* normalized(
  method: DescMethod,
  messages: AsyncIterable<MessageInitShape<DescMessage>>,
): AsyncIterable<Message> {
  for await (const message of messages) yield create(method.output, message);
}
