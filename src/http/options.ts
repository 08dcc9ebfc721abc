import type { DescMethod } from "@bufbuild/protobuf";
import type { ConnectRouter, ContextValues } from "@connectrpc/connect";
import type { UniversalHandlerOptions } from "@connectrpc/connect/protocol";
import type { Failure, FailureEncoder } from "./failure.ts";
import type { MultiSegmentDecoding } from "./matcher.ts";
import type { RouteTable } from "./model.ts";

/** What an answer is about: for hooks. */
export interface AnswerInfo<Source> {
  readonly request: Source;
  readonly method: string;
  readonly status: number;
  /** The RPC that the request named; undefined if it named none. */
  readonly rpc: DescMethod | undefined;
  /** Why there is no result; undefined if there is one. */
  readonly failure: Failure | undefined;
}

/**
 * How to serve routes. What connect-es knows too means the same here: interceptors, jsonOptions, readMaxBytes,
 * writeMaxBytes, compressMinBytes, maxTimeoutMs, shutdownSignal, requestGate.
 */
export interface TranscoderOptions<Source>
  extends Partial<
    Omit<UniversalHandlerOptions, "acceptCompression" | "requireConnectProtocolHeader" | "binaryOptions">
  > {
  /** The function that registers the services, the same that a Connect adapter gets. */
  readonly routes: (router: ConnectRouter) => void;
  /** The tables of those services, generated (`*_http.ts`) or made by `createRoutes`. */
  readonly tables: Iterable<RouteTable>;
  readonly contextValues?: (request: Source) => ContextValues;
  /** Default: google.rpc.Status as JSON. */
  readonly failureEncoder?: FailureEncoder;
  /** Called last thing before any answer's headers are sent, to add to them or to take note. */
  readonly onAnswer?: (headers: Headers, answer: AnswerInfo<Source>) => void;
  /** Whether a query parameter that names no field is refused (400) rather than ignored. */
  readonly refuseUnknownQuery?: boolean;
  /** Whether the empty update mask of a PATCH is made from the fields of the body. Default: yes. */
  readonly inferUpdateMask?: boolean;
  /** Which escapes a path variable of several segments keeps. Default: `%2F` alone. */
  readonly multiSegmentDecoding?: MultiSegmentDecoding;
  /** Whether responses are compressed for whoever accepts it. Default: yes, from `compressMinBytes` on. */
  readonly compress?: boolean;
  /** Whether response trailers are sent, as headers with the prefix `trailer-`. Default: no. */
  readonly trailersAsHeaders?: boolean;
}
