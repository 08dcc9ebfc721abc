import type { ConnectError, ConnectRouter, ContextValues, HandlerContext, Transport } from "@connectrpc/connect";
import type { UniversalHandlerOptions } from "@connectrpc/connect/protocol";
import type { BoundsOptions } from "./bounds.ts";
import type { ContentCodec } from "./codec/content-codec.ts";
import type { ResponseOptions } from "./response/responses.ts";
import type { RouteTable, TableOptions } from "./routes/model.ts";
import type { ForwardOptions } from "./upstream/forward.ts";

/**
 * Options of the request handlers. Those of connect-es have the same meaning here: interceptors, jsonOptions, readMaxBytes (default here:
 * 4 MiB, which limits the decompressed body too), writeMaxBytes, compressMinBytes, maxTimeoutMs, shutdownSignal, requestGate.
 */
export type HandlerOptions<Source> = CommonOptions<Source> & (LocalOptions | RemoteOptions);

/** The options of a handler whose services are implemented in this process. */
export interface LocalOptions {
  /** The function that registers the services, the same as for a Connect adapter. */
  readonly routes: (router: ConnectRouter) => void;
  readonly transport?: undefined;
  readonly forward?: undefined;
}

/** The options of a handler whose services are implemented by a remote server. */
export interface RemoteOptions {
  readonly routes?: undefined;
  /** Calls the remote server: `createGrpcTransport`, `createGrpcWebTransport` or `createConnectTransport` of connect-node. */
  readonly transport: Transport;
  readonly forward?: ForwardOptions;
}

/** The options that do not depend on where the services are implemented. */
export interface CommonOptions<Source>
  extends ResponseOptions<Source>,
    BoundsOptions,
    TableOptions,
    Partial<
      Omit<
        UniversalHandlerOptions,
        "acceptCompression" | "requireConnectProtocolHeader" | "binaryOptions" | "jsonOptions"
      >
    > {
  /** The route tables of the services: generated (`*_http.ts`), or from `createRoutes`. */
  readonly tables: Iterable<RouteTable>;
  /**
   * The path below which the routes are served, such as `/api`: not needed behind a router that removes it from the URL, as Express does.
   * Default: none.
   */
  readonly requestPathPrefix?: string;
  readonly contextValues?: (request: Source) => ContextValues;
  /**
   * Decides in place of `requestGate`, and returns the error of a call that it refuses: a flood of refused calls costs less if nothing is
   * thrown. Connect adapters do not know this option, so their `requestGate` has to throw the same errors.
   */
  readonly refuse?: (context: HandlerContext) => ConnectError | undefined | Promise<ConnectError | undefined>;
  /**
   * Content types other than JSON, such as `[protobufCodec]`. A request chooses by its Content-Type, a response by Accept or otherwise by
   * the request's type. Default: none.
   */
  readonly codecs?: Iterable<ContentCodec>;
  /**
   * How many values the objects and arrays of a message may have together, and how many fields a form may have. Each takes the memory of an
   * object, however few bytes were sent for it. Default: 100,000.
   */
  readonly readMaxElements?: number;
}
