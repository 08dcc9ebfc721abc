/** The parts that the handlers of unary calls share for all protocols. */
import type { DescMessage, DescMethod } from "@bufbuild/protobuf";
import type { ConnectError, ConnectRouter, ContextValues, HandlerContext } from "@connectrpc/connect";
import {
  createMethodSerializationLookup,
  createMethodUrl,
  type MethodSerializationLookup,
  type UniversalHandlerOptions,
} from "@connectrpc/connect/protocol";
import { Call } from "../call/call.ts";
import type { Exchange } from "../call/exchange.ts";
import { type RecordedRpc, recordRoutes } from "../call/recorder.ts";
import { requirePathPrefix } from "../routes/path-prefix.ts";

/** The options of the handler of unary calls. They mean the same as in connect-es; `acceptCompression` is empty by default. */
export interface UnaryOptions<Source> extends Partial<UniversalHandlerOptions> {
  /** The function that registers the services, the same as for a Connect adapter. */
  readonly routes: (router: ConnectRouter) => void;
  /** The path below which the RPCs are served, such as `/api`, as for a Connect adapter. Default: none. */
  readonly requestPathPrefix?: string;
  readonly contextValues?: (request: Source) => ContextValues;
  /** Returns the error that the client receives in place of `error`; undefined means `error` itself. */
  readonly translateError?: (error: ConnectError, context: HandlerContext) => ConnectError | undefined;
  /** Called immediately before the headers of any response are sent; may change them. */
  readonly onResponse?: (headers: Headers, request: Source) => void;
}

/** A unary RPC and everything needed to serve it. */
export interface Procedure {
  readonly method: DescMethod;
  readonly rpc: RecordedRpc;
  readonly serialization: MethodSerializationLookup<DescMessage, DescMessage>;
}

/** Returns the unary RPCs of the registered services by their paths. */
export function createProcedures<Source>(options: UnaryOptions<Source>): ReadonlyMap<string, Procedure> {
  const procedures = new Map<string, Procedure>();
  const { requestPathPrefix: prefix } = options;
  if (prefix !== undefined) requirePathPrefix(prefix);
  for (const [method, rpc] of recordRoutes(options.routes, options)) {
    if (rpc.spec.kind !== "unary") continue;
    const { binaryOptions, jsonOptions } = rpc.options;
    const serialization = createMethodSerializationLookup(method, binaryOptions, jsonOptions, rpc.options);
    procedures.set(createMethodUrl(prefix ?? "/", method), { method, rpc, serialization });
  }
  return procedures;
}

export function openCall<Source>(
  { contextValues }: UnaryOptions<Source>,
  { method, rpc }: Procedure,
  exchange: Exchange<Source>,
  protocolName: string,
  timeoutMs: number | undefined,
): Call {
  const { shutdownSignal } = rpc.options;
  const values = contextValues?.(exchange.source);
  return new Call(method, exchange, { protocolName, timeoutMs, shutdownSignal, contextValues: values });
}

/** Calls the option `requestGate` before the body is read, so the message of a refused request is never decompressed or parsed. */
export async function passGate({ options: { requestGate } }: RecordedRpc, call: Call): Promise<void> {
  // Node calls handlers as soon as it has parsed a head. After this wait it has also parsed a small body that arrived with the head.
  await undefined;
  const gated = requestGate?.(call);
  if (gated !== undefined) await gated;
  call.exposeSignal();
}
