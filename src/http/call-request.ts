import type { DescMethodStreaming, DescMethodUnary, DescService, Message } from "@bufbuild/protobuf";
import type { ContextValues, StreamRequest, UnaryRequest } from "@connectrpc/connect";
import { type Call, lazySignal, ofCall } from "./call.ts";

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

/** The request of a unary call, as interceptors get it. */
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

/** The request of a server-streaming call, as interceptors get it. */
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
