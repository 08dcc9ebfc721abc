/**
 * Serves the google.api.http routes of Connect services over node:http, node:http2 and fetch. See docs/reference/http-layer.md.
 *
 * The plugin `protoc-gen-connect-http` generates a route table beside the output of protoc-gen-es; `createRoutes` derives
 * one at run time. A handler combines tables with the function that registers the services at a Connect adapter. It calls
 * the implementation directly, with the same interceptors, context values, deadlines and headers:
 *
 *     const handler = createHttpHandler({ routes, tables: [ShelfRoutes], interceptors, fallback: connectNodeAdapter({ routes }) });
 *     createServer(handler).listen(8080);
 *
 * google/api/http.proto leaves some cases open. Here literals win over `*`, which wins over `**`, with backtracking; the path wins
 * over body and query; a query names fields by JSON or proto name, singular fields once; a stream is NDJSON, server-sent
 * events or a JSON array, chosen by Accept, and a failure in it is its last message: `{"error": …}`.
 */

import { type CreateFetchHandler, fetchHandlersWith } from "./fetch/fetch-handler.ts";
import { nodeGzip } from "./node/gzip.ts";

export type { BoundsOptions } from "./bounds.ts";
export { peerAddress, successStatus } from "./call/context-keys.ts";
export { HeaderMap } from "./call/header-map.ts";
export { BadInput, type InputPlace } from "./codec/bad-input.ts";
export { type ContentCodec, type MessageCodec, protobufCodec, type ValueCodec } from "./codec/content-codec.ts";
export { SYSTEM_PARAMETERS } from "./codec/query.ts";
export type { CreateFetchHandler, FetchHandler, FetchHandlerOptions } from "./fetch/fetch-handler.ts";
export type { NodeRequest } from "./node/node-exchange.ts";
export { createHttpHandler, type HttpHandlerOptions, type NodeHandler } from "./node/node-handler.ts";
export type { NodeResponse } from "./node/node-response.ts";
export type { CommonOptions, HandlerOptions, LocalOptions, RemoteOptions } from "./options.ts";
export { checkPreconditions, type EntityTagOptions, entityTags } from "./response/entity-tags.ts";
export type {
  Failure,
  FailureContext,
  FailureEncoder,
  FailureResponse,
  ResponseInfo,
} from "./response/failure.ts";
export { type ProblemOptions, problemEncoder } from "./response/problem-encoder.ts";
export type { ResponseOptions } from "./response/responses.ts";
export { statusEncoder } from "./response/status-encoder.ts";
export { createRegistryOf, readDescriptorSet } from "./routes/descriptor-set.ts";
export { type Binding, createMatcher, type Match, type Matcher } from "./routes/matcher.ts";
export {
  type ConditionalRequest,
  type EntityTags,
  type MultiSegmentDecoding,
  type RefuseUnknownQuery,
  type Route,
  type RouteEntityTags,
  type RouteTable,
  routeName,
  type TableOptions,
  type TaggedResponse,
} from "./routes/model.ts";
export {
  createRoutes,
  describeRoutes,
  errorsAmong,
  type Problem,
  RouteError,
  type RouteOptions,
  type RuleSources,
} from "./routes/rules.ts";
export { parseServiceConfig, type ServiceConfig } from "./routes/service-config.ts";
export { parseTemplate, type Template, TemplateError, type Variable } from "./routes/template.ts";
export { createUnaryHandler, type UnaryHandlerOptions } from "./rpc/unary-handler.ts";
export { type ForwardOptions, forwardTo } from "./upstream/forward.ts";
export {
  forwardRequestHeader,
  forwardResponseHeader,
  type HeaderMatcher,
  type MetadataOptions,
} from "./upstream/metadata.ts";

/** Serves route tables with the types of fetch, on Node. Other runtimes import it from `connect-http-routes/fetch`. */
export const createFetchHandler: CreateFetchHandler = fetchHandlersWith(nodeGzip);
