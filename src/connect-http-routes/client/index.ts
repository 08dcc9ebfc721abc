/** A typed client for the JSON routes of a service, over fetch. */
export type { RouteTable } from "../routes/model.ts";
export { createRestClient } from "./rest-client.ts";
export { type ErrorDecoder, RestError } from "./rest-error.ts";
export { createRestTransport, type RestTransportOptions } from "./rest-transport.ts";
