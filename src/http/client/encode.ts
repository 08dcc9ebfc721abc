import type { DescMethod, Message, Registry } from "@bufbuild/protobuf";
import { reflect } from "@bufbuild/protobuf/reflect";
import { Code, ConnectError } from "@connectrpc/connect";
import { jsonTextOf } from "../codec/json-text.ts";
import type { Route } from "../routes/model.ts";
import { jsonOf, NotCarried, pathFor, queryFor } from "./request-target.ts";

/** A request for one message. */
export interface EncodedRequest {
  readonly route: Route;
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  readonly contentType: string | undefined;
  readonly body: string | Uint8Array | undefined;
}

/** What `fetch` takes as a body. */
export type FetchBody = NonNullable<RequestInit["body"]>;

/** Fields of google.api.HttpBody. */
interface HttpBody {
  readonly contentType: string;
  readonly data: Uint8Array;
}

/**
 * Encodes a message for the first of an RPC's routes that can carry it.
 * @throws ConnectError `invalid_argument` if none can, `unimplemented` if there is none
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
  const bodyField = input.fields.find((field) => field.name === route.body);
  const rawType = route.body === "*" ? input : bodyField?.message;
  const raw = rawType?.typeName === "google.api.HttpBody";
  const json = raw && route.body === "*" ? {} : jsonOf(input, message, registry);
  const path = pathFor(route, reflect(input, message), json);
  const verb = route.method === "*" ? (route.body === "" ? "GET" : "POST") : route.method;
  if (raw) {
    const source =
      bodyField === undefined ? message : (message as unknown as Record<string, Message>)[bodyField.localName];
    if (bodyField !== undefined) delete json[bodyField.jsonName];
    const { contentType, data } = (source ?? { contentType: "", data: undefined }) as Partial<HttpBody>;
    const target = path + (bodyField === undefined ? "" : queryFor(input, json));
    return { route, method: verb, target, contentType: contentType || undefined, body: data };
  }
  const contentType = "application/json";
  const text = jsonTextOf(input);
  if (route.body === "*") return { route, method: verb, target: path, contentType, body: text(json) };
  const content = bodyField && json[bodyField.jsonName];
  if (bodyField !== undefined) delete json[bodyField.jsonName];
  const target = path + queryFor(input, json);
  if (content === undefined) return { route, method: verb, target, contentType: undefined, body: undefined };
  return { route, method: verb, target, contentType, body: text(content) };
}
