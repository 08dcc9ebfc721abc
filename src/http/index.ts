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
