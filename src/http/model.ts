import type { DescService } from "@bufbuild/protobuf";
import type { Template } from "./template.ts";

/**
 * One binding of one RPC: an HTTP method and a path template, and where the message's fields travel. Data only: the
 * plugin writes it to `*_http.ts`, `createRoutes` makes the same from descriptors at run time.
 */
export interface Route<Rpc extends string = string> extends Template {
  /** The RPC's local name: the key of `service.method`. */
  readonly rpc: Rpc;
  /** The HTTP method, or `*` for every method, but OPTIONS, that no other route has. */
  readonly method: string;
  /** The template as it is written in the annotation. */
  readonly template: string;
  /** `*`: the body is the message. A proto field name: the body is that field. Empty: there is no body. */
  readonly body: string;
  /** The proto name of the response field that is the response body. Empty: the whole response. */
  readonly responseBody: string;
}

/** The routes of one service. */
export interface RouteTable<Service extends DescService = DescService> {
  readonly service: Service;
  readonly routes: readonly Route<keyof Service["method"] & string>[];
}

/** `GET /v1/{name}`: how a route is named in messages. */
export function routeName(route: Pick<Route, "method" | "template">): string {
  return `${route.method} ${route.template}`;
}
