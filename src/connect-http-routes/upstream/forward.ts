import type { DescMethodStreaming, DescMethodUnary, DescService, Message } from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  type ConnectRouter,
  type HandlerContext,
  type ServiceImpl,
  type Transport,
} from "@connectrpc/connect";
import { timedOut } from "../call/errors.ts";
import { once } from "../call/invoke.ts";
import { copyResponseMetadata, createMetadataReader, type MetadataOptions } from "./metadata.ts";
import { fromUpstream } from "./upstream-error.ts";

/** How calls are forwarded to a remote server. */
export interface ForwardOptions extends MetadataOptions {
  /**
   * Timeout of unary calls whose client sets none, in milliseconds. Default: 30,000. Streams have none by default: configure pings on the
   * transport, so that a dead connection is noticed.
   */
  readonly defaultTimeoutMs?: number;
  /**
   * How many times a unary call is repeated if the upstream was unavailable. Default: 0. Set it only for idempotent RPCs: a call may have
   * been executed before the connection was lost.
   */
  readonly retries?: number;
  /** Receives errors of the connection to the upstream; clients learn only that it is unavailable. */
  readonly onUpstreamError?: (error: unknown) => void;
}

const DEFAULT_TIMEOUT_MS = 30_000;
/** The pause before the first retry, in milliseconds. It doubles with each further retry. */
const RETRY_PAUSE_MS = 50;

/** Implements services by forwarding every call to the transport of a gRPC, gRPC-Web or Connect server. */
export function forwardTo(
  transport: Transport,
  services: Iterable<DescService>,
  options: ForwardOptions = {},
): (router: ConnectRouter) => void {
  const implementations = [...services].map(
    (service) => [service, implementService(transport, service, options)] as const,
  );
  return (router) => {
    for (const [service, implementation] of implementations) router.service(service, implementation);
  };
}

function implementService(
  transport: Transport,
  service: DescService,
  options: ForwardOptions,
): Partial<ServiceImpl<DescService>> {
  const upstream: Upstream = { transport, options, metadataOf: createMetadataReader(options) };
  const implementation: Record<string, unknown> = {};
  for (const method of service.methods) {
    implementation[method.localName] =
      method.methodKind === "unary"
        ? forwardUnary(upstream, method as DescMethodUnary)
        : forwardStreaming(upstream, method as DescMethodStreaming);
  }
  return implementation as Partial<ServiceImpl<DescService>>;
}

interface Upstream {
  readonly transport: Transport;
  readonly options: ForwardOptions;
  readonly metadataOf: (context: HandlerContext) => [string, string][];
}

function forwardStreaming({ transport, options, metadataOf }: Upstream, method: DescMethodStreaming) {
  const { responseHeaders } = options;
  async function* stream(inputs: AsyncIterable<Message>, context: HandlerContext): AsyncGenerator<Message> {
    const { signal } = context;
    const timeoutMs = timeoutOf(context);
    const leftMs = countDown(timeoutMs);
    const requests = { isReadable: true };
    let isResponding = false;
    try {
      const messages = noteFailure(inputs, requests);
      const response = await transport.stream(method, signal, timeoutMs, metadataOf(context), messages, context.values);
      copyResponseMetadata(response.header, context.responseHeader, responseHeaders);
      isResponding = true;
      for await (const message of response.message) yield message;
      copyResponseMetadata(response.trailer, context.responseTrailer, responseHeaders);
    } catch (error) {
      const isOfResponse = isResponding && requests.isReadable;
      throw fromUpstream(error, { signal, leftMs: leftMs(), isOfResponse }, options.onUpstreamError);
    }
  }
  async function last(inputs: AsyncIterable<Message>, context: HandlerContext): Promise<Message> {
    let output: Message | undefined;
    for await (const message of stream(inputs, context)) output = message;
    if (output !== undefined) return output;
    throw new ConnectError("the upstream sent no response message", Code.Unimplemented);
  }
  switch (method.methodKind) {
    case "bidi_streaming":
      return stream;
    case "client_streaming":
      return last;
    case "server_streaming":
      return (input: Message, context: HandlerContext) => stream(once(input), context);
  }
}

function forwardUnary({ transport, options, metadataOf }: Upstream, method: DescMethodUnary) {
  const { defaultTimeoutMs = DEFAULT_TIMEOUT_MS, retries = 0 } = options;
  return async (input: Message, context: HandlerContext): Promise<Message> => {
    const { signal } = context;
    for (let attempt = 0; ; attempt++) {
      const timeoutMs = timeoutOf(context) ?? defaultTimeoutMs;
      const leftMs = countDown(timeoutMs);
      try {
        const metadata = metadataOf(context);
        const response = await transport.unary(method, signal, timeoutMs, metadata, input, context.values);
        copyResponseMetadata(response.header, context.responseHeader, options.responseHeaders);
        copyResponseMetadata(response.trailer, context.responseTrailer, options.responseHeaders);
        return response.message;
      } catch (reason) {
        const error = fromUpstream(reason, { signal, leftMs: leftMs() }, options.onUpstreamError);
        if (attempt >= retries || error.code !== Code.Unavailable || signal.aborted) throw error;
        await pause(RETRY_PAUSE_MS * 2 ** attempt, signal);
      }
    }
  };
}

/** Returns the time left of the client's deadline. A transport takes 0 for "no timeout", so the result is never 0. */
function timeoutOf(context: HandlerContext): number | undefined {
  const timeoutMs = context.timeoutMs();
  if (timeoutMs === undefined) return undefined;
  if (timeoutMs <= 0) throw timedOut();
  return Math.ceil(timeoutMs);
}

/** Returns a function that returns the time left of a timeout that starts now. */
function countDown(timeoutMs = Number.POSITIVE_INFINITY): () => number {
  const startMs = performance.now();
  return () => timeoutMs - (performance.now() - startMs);
}

/** Passes messages on, and notes if reading them fails. An error of the receiver is not noted. */
async function* noteFailure(messages: AsyncIterable<Message>, note: { isReadable: boolean }): AsyncGenerator<Message> {
  const iterator = messages[Symbol.asyncIterator]();
  const read = () =>
    iterator.next().catch((error: unknown) => {
      note.isReadable = false;
      throw error;
    });
  try {
    for (let next = await read(); next.done !== true; next = await read()) yield next.value;
  } finally {
    await iterator.return?.();
  }
}

/** Resolves after some time, or as soon as the call is aborted. */
function pause(durationMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, durationMs);
    signal.addEventListener("abort", end);
  });
}
