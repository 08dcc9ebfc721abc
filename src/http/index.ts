/**
 * Serves the google.api.http routes of a Connect service, over node:http, node:http2 and fetch's types.
 *
 * The plugin `protoc-gen-connect-http` writes a table of routes beside protoc-gen-es's output, or `createRoutes` makes
 * one at run time. A handler joins tables with the function that registers the services at a Connect adapter, and calls
 * the implementation itself, under the same interceptors, context values, deadlines and headers:
 *
 *     const handler = createHttpHandler({ routes, tables: [ShelfRoutes], interceptors, fallback: connectNodeAdapter({ routes }) });
 *     createServer(handler).listen(8080);
 *
 * What google/api/http.proto leaves open, these decide: literals before `*` before `**`, with backtracking; the path wins
 * over body and query; a query names fields by JSON or proto name, once if they are singular; a stream is lines of JSON,
 * server-sent events or one array, as Accept likes it, and a failure in it is its last message: `{"error": …}`.
 */
export { BadInput, type InputPlace } from "./bad-input.ts";
export {
  type Failure,
  type FailureAnswer,
  type FailureContext,
  type FailureEncoder,
  statusEncoder,
} from "./failure.ts";
export { createFetchHandler, type FetchHandler, type FetchHandlerOptions } from "./fetch-handler.ts";
export { type Binding, createMatcher, type Match, type Matcher, type MultiSegmentDecoding } from "./matcher.ts";
export { type Route, type RouteTable, routeName } from "./model.ts";
export {
  createHttpHandler,
  type HttpHandlerOptions,
  type NodeHandler,
  type NodeRequest,
} from "./node-handler.ts";
export type { NodeResponse } from "./node-response.ts";
export type { AnswerInfo, TranscoderOptions } from "./options.ts";
export { createRoutes, describeRoutes, type Problem, RouteError } from "./rules.ts";
export { successStatus } from "./success-status.ts";
export { parseTemplate, type Template, TemplateError, type Variable } from "./template.ts";
