import type { DescMethod } from "@bufbuild/protobuf";
import { DEFAULT_MESSAGE_LIMITS } from "../codec/message-limits.ts";
import { createRequestCodec, type RequestCodec } from "../codec/request-codec.ts";
import { createResponseCodec, type ResponseCodec, responseType } from "../codec/response-codec.ts";
import { isHttpBody } from "../routes/field-path.ts";
import { type Route, type RouteEntityTags, type RouteTable, routeName, type TableOptions } from "../routes/model.ts";
import type { RecordedRpc } from "./recorder.ts";

/** A route and everything needed to serve it. */
export interface Endpoint {
  readonly route: Route;
  readonly rpc: RecordedRpc;
  readonly method: DescMethod;
  readonly request: RequestCodec;
  readonly response: ResponseCodec;
  /** Whether the response content is the bytes of a google.api.HttpBody. */
  readonly raw: boolean;
  readonly entityTags: RouteEntityTags | undefined;
  readonly streamResults: boolean;
  readonly grpcMetadata: boolean;
}

interface EndpointOptions extends TableOptions {
  readonly tables: Iterable<RouteTable>;
  readonly readMaxElements?: number;
}

/** Joins routes and implementations. Routes of RPCs without implementation are left out. @throws Error if a service is not registered */
export function createEndpoints(
  recorded: ReadonlyMap<DescMethod, RecordedRpc>,
  options: EndpointOptions,
): ReadonlyMap<Route, Endpoint> {
  const endpoints = new Map<Route, Endpoint>();
  const limits = {
    ...DEFAULT_MESSAGE_LIMITS,
    ...(options.readMaxElements && { maxElements: options.readMaxElements }),
  };
  for (const table of options.tables) {
    const { service, routes } = table;
    const option = <Name extends keyof TableOptions>(name: Name): TableOptions[Name] => table[name] ?? options[name];
    const entityTags = option("entityTags");
    if (!service.methods.some((method) => recorded.has(method))) {
      throw new Error(`there are routes of ${service.typeName}, but the service is not registered`);
    }
    for (const route of routes) {
      const method = service.method[route.rpc];
      if (method === undefined) throw new Error(`${routeName(route)}: ${service.typeName} has no RPC ${route.rpc}`);
      const rpc = recorded.get(method);
      if (rpc === undefined) continue;
      // The JSON options are the same as on the Connect endpoint: unknown fields are ignored by default.
      const json = { ignoreUnknownFields: true, ...rpc.options.jsonOptions, ...table.jsonOptions };
      endpoints.set(route, {
        route,
        rpc,
        method,
        request: createRequestCodec(method, route, {
          json,
          limits,
          refuseUnknownQuery: option("refuseUnknownQuery") ?? false,
          inferUpdateMask: option("inferUpdateMask") ?? true,
          formPosts: option("formPosts") ?? false,
          multipart: option("multipart") ?? false,
          caseInsensitiveEnums: option("caseInsensitiveEnums") ?? false,
        }),
        response: createResponseCodec(method, route, json, option("int64AsNumber")),
        raw: isHttpBody(responseType(method, route)),
        entityTags: entityTags?.of(method, route),
        streamResults: option("streamResults") ?? false,
        grpcMetadata: option("grpcMetadata") ?? false,
      });
    }
  }
  return endpoints;
}
