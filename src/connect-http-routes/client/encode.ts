import type { DescMethod, Message, Registry } from "@bufbuild/protobuf";
import { reflect } from "@bufbuild/protobuf/reflect";
import { Code, ConnectError } from "@connectrpc/connect";
import type { HttpBody } from "../../../gen/google/api/httpbody_pb.ts";
import { jsonReplacerOf } from "../codec/json-text.ts";
import { fieldByName, isHttpBody, messageType } from "../routes/field-path.ts";
import type { Route } from "../routes/model.ts";
import { jsonOf, NotCarried, pathFor, queryFor } from "./request-target.ts";

/** A request for one message. */
export interface EncodedRequest {
  readonly route: Route;
  readonly method: string;
  /** The path and the query of the URL. */
  readonly target: string;
  readonly contentType: string | undefined;
  readonly body: string | Uint8Array | undefined;
}

export type FetchBody = NonNullable<RequestInit["body"]>;

/**
 * Encodes a message for the first of an RPC's routes that can carry it.
 * @throws ConnectError `invalid_argument` if no route can carry it, `unimplemented` if the RPC has no route
 */
export function encodeRequest(
  method: DescMethod,
  routes: readonly Route[],
  message: Message,
  registry: Registry | undefined,
): EncodedRequest {
  if (routes.length === 0) throw new ConnectError(`${method.name} has no HTTP route`, Code.Unimplemented);
  const reasons: string[] = [];
  for (const route of routes) {
    try {
      return encodeFor(method, route, message, registry);
    } catch (error) {
      if (!(error instanceof NotCarried)) throw error;
      reasons.push(`${route.method} ${route.template}: ${error.message}`);
    }
  }
  throw new ConnectError(`no route carries this request: ${reasons.join("; ")}`, Code.InvalidArgument);
}

function encodeFor(
  { input }: DescMethod,
  route: Route,
  message: Message,
  registry: Registry | undefined,
): EncodedRequest {
  const bodyField = fieldByName(input, route.body);
  const raw = isHttpBody(route.body === "*" ? input : messageType(bodyField));
  const json = raw && route.body === "*" ? {} : jsonOf(input, message, registry);
  const whole = reflect(input, message);
  const path = pathFor(route, whole, json);
  const method = route.method === "*" ? (route.body === "" ? "GET" : "POST") : route.method;
  const content = route.body === "*" ? json : bodyField && json[bodyField.jsonName];
  if (bodyField !== undefined) delete json[bodyField.jsonName];
  const target = path + (route.body === "*" ? "" : queryFor(input, json));
  if (raw) {
    const source = bodyField?.fieldKind === "message" ? whole.get(bodyField).message : message;
    const { contentType, data } = source as HttpBody;
    return { route, method, target, contentType: contentType || undefined, body: data };
  }
  const isEmpty = content === undefined || (method === "DELETE" && content === json && Object.keys(json).length === 0);
  if (isEmpty) return { route, method, target, contentType: undefined, body: undefined };
  return {
    route,
    method,
    target,
    contentType: "application/json",
    body: JSON.stringify(content, jsonReplacerOf(input)),
  };
}
