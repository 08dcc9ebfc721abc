import type { DescService } from "@bufbuild/protobuf";
import type { Template } from "./template.ts";

/**
 * One binding of one RPC: an HTTP method, a path template, and which part of the request carries which fields. Plain
 * data: the plugin writes it to `*_http.ts`, `createRoutes` derives the same from descriptors at run time.
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

/** The routes of one service. */
export interface RouteTable<Service extends DescService = DescService> {
  readonly service: Service;
  readonly routes: readonly Route<keyof Service["method"] & string>[];
  /** Default: that of the handler. */
  readonly multiSegmentDecoding?: MultiSegmentDecoding;
}

/** `GET /v1/{name}`: the name of a route in error messages. */
export function routeName(route: Pick<Route, "method" | "template">): string {
  return `${route.method} ${route.template}`;
}
