import type { DescMethod, DescService, JsonReadOptions, JsonWriteOptions, Message } from "@bufbuild/protobuf";
import type { Template } from "./template.ts";

/**
 * One binding of one RPC: an HTTP method, a path template, and which part of the request carries which fields. It is plain data, which the
 * plugin writes to `*_http.ts`, and `createRoutes` derives from descriptors at run time.
 */
export interface Route<Rpc extends string = string> extends Template {
  /** The RPC's local name: the key of `service.method`. */
  readonly rpc: Rpc;
  /** The HTTP method, or `*`: every method except OPTIONS for which the path has no route of its own. */
  readonly method: string;
  /** The template as it is written in the annotation. */
  readonly template: string;
  /** `*`: the body is the whole message. A proto field name: the body is that field. Empty: no body is bound. */
  readonly body: string;
  /** The proto name of the response field that is the response body. Empty: the whole response. */
  readonly responseBody: string;
}

/** Which escapes stay undecoded in multi-segment variables: `%2F`, those of reserved characters, or none. */
export type MultiSegmentDecoding = "except-slash" | "except-reserved" | "all";

/** Whether parameters that name no field are refused (400). Listed names are still ignored; `utm_*` lists a prefix. */
export type RefuseUnknownQuery = boolean | { readonly allow: readonly string[] };

/** A request that may have preconditions. */
export interface ConditionalRequest {
  readonly method: string;
  readonly headers: Headers;
}

/** A response that may get an entity tag. */
export interface TaggedResponse {
  readonly headers: Headers;
  readonly message: Message;
  /** The content before it is compressed. */
  readonly content: string | Uint8Array;
  /** The media type of the content, if a codec other than JSON has made it. */
  readonly mediaType: string | undefined;
  /** `gzip`, if the content will be compressed. */
  readonly coding: "gzip" | undefined;
}

/** Gives responses their entity tags. `entityTags()` makes one. */
export interface EntityTags {
  /** Returns the entity tags of a route; undefined if its responses have none. */
  of(method: DescMethod, route: Route): RouteEntityTags | undefined;
}

export interface RouteEntityTags {
  /** The source of the tag if the handler of the RPC does not set it; `handler` if there is no other. */
  readonly source: "field" | "digest" | "handler";
  /**
   * Sets the `ETag` of a successful response.
   * @returns whether the client has this response already (304)
   * @throws ConnectError if a precondition does not hold
   */
  isUnmodified(request: ConditionalRequest, response: TaggedResponse): Promise<boolean>;
}

/** How the requests of a table are read, and its responses written. The options of a handler are the defaults of its tables. */
export interface TableOptions {
  /** Which escapes stay undecoded in multi-segment path variables. Default: `except-slash`. */
  readonly multiSegmentDecoding?: MultiSegmentDecoding | undefined;
  /** Whether names of enum values are accepted in any case, in path, query and body. Default: false. */
  readonly caseInsensitiveEnums?: boolean | undefined;
  /**
   * Whether routes with body `*` also take `application/x-www-form-urlencoded`, with fields named as in a query. Default: false, because
   * pages of other origins can send forms without a CORS preflight.
   */
  readonly formPosts?: boolean | undefined;
  /**
   * Whether routes with body `*` also take `multipart/form-data`: files are fields of the type google.api.HttpBody or bytes, other parts
   * are fields named as in a query, or messages as JSON. The body is in memory as a whole (`readMaxBytes`). Default: false, because pages
   * of other origins can send such forms without a CORS preflight.
   */
  readonly multipart?: boolean | undefined;
  /**
   * Whether a POST with `X-HTTP-Method-Override` is treated as a request of that method, for clients behind proxies that pass only GET
   * and POST. Default: false.
   */
  readonly methodOverride?: boolean | undefined;
  /**
   * Whether a request is refused if a query parameter names no field that a query can set. On routes with body `*` a query can set none.
   * Parameters to ignore nevertheless can be listed: `{ allow: [...SYSTEM_PARAMETERS, "utm_*"] }`. Default: false, all are ignored.
   */
  readonly refuseUnknownQuery?: RefuseUnknownQuery | undefined;
  /** How JSON is read and written. Each given option replaces the same one of the handler. Default: those of the handler. */
  readonly jsonOptions?: Partial<JsonReadOptions & JsonWriteOptions>;
  /**
   * Whether 64-bit integers of responses are written as numbers where JavaScript reads them exactly, from -(2^53 - 1) to 2^53 - 1. Default:
   * false, all are texts, as proto JSON has them.
   */
  readonly int64AsNumber?: boolean | undefined;
  /** Whether the messages of response streams are written as `{"result": …}`, as by grpc-gateway. Default: false. */
  readonly streamResults?: boolean | undefined;
  /**
   * Whether metadata has the prefix `Grpc-Metadata-` in HTTP headers, as in grpc-gateway: it is removed from request headers (those without
   * it stay), and added to the headers that handlers set; trailers get `Grpc-Trailer-`. Default: false.
   */
  readonly grpcMetadata?: boolean | undefined;
  /**
   * Whether the empty update mask of a PATCH is derived from the fields of the body. The mask is the field `update_mask`, or with
   * `any-name` the only mask of the request, as in grpc-gateway. Default: true.
   */
  readonly inferUpdateMask?: boolean | "any-name" | undefined;
  /** Gives responses entity tags, and evaluates the preconditions of GET: `entityTags()`. Default: none. */
  readonly entityTags?: EntityTags | undefined;
}

/** The routes of one service. */
export interface RouteTable<Service extends DescService = DescService> extends TableOptions {
  readonly service: Service;
  readonly routes: readonly Route<keyof Service["method"] & string>[];
}

/** Returns the name of a route in error messages: `GET /v1/{name}`. */
export function routeName(route: Pick<Route, "method" | "template">): string {
  return `${route.method} ${route.template}`;
}
