import type { DescMethodStreaming, DescMethodUnary, DescService, Message } from "@bufbuild/protobuf";
import type { ContextValues, StreamRequest, UnaryRequest } from "@connectrpc/connect";
import { type Call, lazySignal, ofCall } from "./call.ts";

/** The properties that unary and streaming requests have in common. */
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

/** The request that interceptors of a unary call receive. */
export class CallUnaryRequest extends CallRequest implements UnaryRequest {
  readonly stream = false;
  readonly message: Message;
  readonly method: DescMethodUnary;

  constructor(call: Call, method: DescMethodUnary, message: Message) {
    super(call);
    this.message = message;
    this.method = method;
  }
}

/** The request that interceptors of a server-streaming call receive. */
export class CallStreamRequest extends CallRequest implements StreamRequest {
  readonly stream = true;
  readonly message: AsyncIterable<Message>;
  readonly method: DescMethodStreaming;

  constructor(call: Call, method: DescMethodStreaming, message: AsyncIterable<Message>) {
    super(call);
    this.message = message;
    this.method = method;
  }
}
