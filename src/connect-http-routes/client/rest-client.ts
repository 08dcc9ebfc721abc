import type { DescMethodStreaming, DescMethodUnary, DescService, Message } from "@bufbuild/protobuf";
import {
  type CallOptions,
  type Client,
  Code,
  ConnectError,
  makeAnyClient,
  type StreamResponse,
  type Transport,
} from "@connectrpc/connect";
import type { RouteTable } from "../routes/model.ts";
import { createRestTransport, type RestTransportOptions } from "./rest-transport.ts";

/**
 * Creates a client for the JSON routes of a service, with the same methods as a Connect client. It uses `fetch`, and runs in browsers.
 *
 * @param table the generated routes of a service (`*_http.ts`), or those of `createRoutes`
 * @throws TypeError without `baseUrl`
 * @example
 *     const library = createRestClient(LibraryServiceRoutes, { baseUrl: "https://api.example.com" });
 *     const book = await library.getBook({ name: "shelves/1/books/2" });
 */
export function createRestClient<Service extends DescService>(
  table: { readonly service: Service; readonly routes: RouteTable["routes"] },
  options: RestTransportOptions,
): Client<Service> {
  const transport = createRestTransport([table], options);
  return makeAnyClient(table.service, (method) => {
    if (method.methodKind === "unary") return unaryMethod(transport, method as DescMethodUnary);
    return streamingMethod(transport, method as DescMethodStreaming);
  }) as Client<Service>;
}

// These methods replace `createClient` of connect-es, whose code is three times as long, because it is compiled for older engines.

function unaryMethod(transport: Transport, method: DescMethodUnary) {
  return async (input: Message, options: CallOptions = {}): Promise<Message> => {
    const { signal, timeoutMs, headers, contextValues } = options;
    const response = await transport.unary(method, signal, timeoutMs, headers, input, contextValues);
    options.onHeader?.(response.header);
    options.onTrailer?.(response.trailer);
    return response.message;
  };
}

function streamingMethod(transport: Transport, method: DescMethodStreaming) {
  async function* call(inputs: AsyncIterable<Message>, options: CallOptions = {}): AsyncGenerator<Message> {
    const { signal, timeoutMs, headers, contextValues } = options;
    // The request is aborted when the consumer stops.
    const stop = new AbortController();
    const either = signal === undefined ? stop.signal : AbortSignal.any([signal, stop.signal]);
    try {
      const response: StreamResponse = await transport.stream(
        method,
        either,
        timeoutMs,
        headers,
        inputs,
        contextValues,
      );
      options.onHeader?.(response.header);
      for await (const message of response.message) yield message;
      options.onTrailer?.(response.trailer);
    } finally {
      stop.abort();
    }
  }
  switch (method.methodKind) {
    case "server_streaming":
      return (input: Message, options?: CallOptions) => call(only(input), options);
    case "bidi_streaming":
      return call;
    case "client_streaming":
      return async (inputs: AsyncIterable<Message>, options?: CallOptions): Promise<Message> => {
        let last: Message | undefined;
        for await (const message of call(inputs, options)) last = message;
        if (last !== undefined) return last;
        throw new ConnectError("no response message", Code.Unimplemented);
      };
  }
}

async function* only(message: Message): AsyncGenerator<Message> {
  yield message;
}
