/** The HTTP layer for runtimes with the types of fetch: workers, Deno, Bun, frameworks. It imports no module of Node. */
import { type CreateFetchHandler, fetchHandlersWith } from "./fetch-handler.ts";
import { webGzip } from "./gzip.ts";

export { peerAddress, successStatus } from "../call/context-keys.ts";
export { protobufCodec } from "../codec/content-codec.ts";
export { checkPreconditions, entityTags } from "../response/entity-tags.ts";
export { statusEncoder } from "../response/status-encoder.ts";
export type { RouteTable } from "../routes/model.ts";
export { createRoutes } from "../routes/rules.ts";
export type { CreateFetchHandler, FetchHandler, FetchHandlerOptions } from "./fetch-handler.ts";

/** Serves route tables with the types of fetch. Streamed responses are never compressed: the web cannot flush gzip. */
export const createFetchHandler: CreateFetchHandler = fetchHandlersWith(webGzip);
