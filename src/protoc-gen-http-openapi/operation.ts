import type { DescField, DescMethod } from "@bufbuild/protobuf";
import {
  type EntityTags,
  fieldByName,
  isHttpBody,
  messageType,
  type Route,
  TEXT_MESSAGES,
} from "connect-http-routes/descriptors";
import { commentOf, summaryOf } from "./comments.ts";
import { contentOf, type MediaTypes, RAW, streamOf } from "./content.ts";
import type { HandlerOptions } from "./handler-options.ts";
import type { JsonObject } from "./json.ts";
import { pathParameter, queryParameters } from "./parameters.ts";
import type { PathParameter } from "./paths.ts";
import { isRequired } from "./rules.ts";
import type { Schemas } from "./schemas.ts";
import type { Schema } from "./well-known.ts";

/** What the handler is configured with. */
interface OperationOptions extends Pick<HandlerOptions, "entityTags" | "multipart" | "multiSegmentDecoding"> {
  readonly mediaTypes: MediaTypes;
}

export function describeOperation(
  method: DescMethod,
  route: Route,
  path: readonly PathParameter[],
  names: { readonly tag: string; readonly operationId: string },
  schemas: Schemas,
  options: OperationOptions,
): JsonObject {
  const { input } = method;
  const { mediaTypes, multiSegmentDecoding, entityTags } = options;
  const tags = tagsOf(method, route, entityTags);
  const bodyField = route.body === "*" ? undefined : fieldByName(input, route.body);
  const bound = [...route.variables.map((variable) => variable.field), ...(bodyField ? [bodyField.name] : [])];
  const parameters = [
    ...path.map((parameter) => pathParameter(parameter, input, route, schemas, multiSegmentDecoding)),
    ...(route.body === "*" ? [] : queryParameters(input, bound, schemas)),
    ...(tags?.parameters ?? []),
  ];
  // An RPC without a comment gets its name as the summary, because linters demand a summary of every operation.
  const { summary = method.name, description } = summaryOf(method);
  return {
    tags: [names.tag],
    summary: summary.replaceAll("`", ""), // A summary is plain text, but a description is CommonMark.
    description,
    operationId: names.operationId,
    deprecated: method.deprecated || method.parent.deprecated || undefined,
    parameters: parameters.length > 0 ? parameters : undefined,
    requestBody: requestBody(method, route, { field: bodyField, bound }, schemas, options),
    responses: {
      200: { ...response(method, route, schemas, mediaTypes), ...(tags && { headers: tags.headers }) },
      ...tags?.responses,
      default: { $ref: "#/components/responses/default" },
    },
  };
}

/** Describes the entity tags of a route; undefined if its responses have none. */
function tagsOf(method: DescMethod, route: Route, entityTags: EntityTags | undefined) {
  const isGet = route.method === "GET";
  const source = isGet || route.method === "PATCH" ? entityTags?.of(method, route)?.source : undefined;
  if (source === undefined || source === "handler" || (source === "digest" && !isGet)) return undefined;
  const headers = { ETag: { description: "The entity tag of the content (RFC 9110 section 8.8.3).", schema: TAG } };
  if (!isGet) return { headers, parameters: [], responses: {} };
  const description = "Entity tags: the response is 304 if one of them is that of the content.";
  const parameters = [{ name: "If-None-Match", in: "header", description, schema: TAG }];
  return { headers, parameters, responses: { 304: { description: "Not modified.", headers } } };
}

const TAG: Schema = { type: "string" };

/** Methods whose request body has no defined meaning (RFC 9110 section 9.3). */
const WITHOUT_BODY = new Set(["GET", "HEAD", "DELETE"]);

/**
 * Describes the request body. An empty body is an empty message, so the body is required only if such a message is invalid. The body of
 * a DELETE is described only if there are fields for it to carry.
 */
function requestBody(
  method: DescMethod,
  route: Route,
  { field, bound }: { readonly field: DescField | undefined; readonly bound: readonly string[] },
  schemas: Schemas,
  { mediaTypes, multipart }: OperationOptions,
): JsonObject | undefined {
  if (route.body === "") return undefined;
  const { input } = method;
  if (isHttpBody(field === undefined ? input : messageType(field))) return { content: RAW };
  const content = (schema: Schema): JsonObject =>
    method.methodKind === "client_streaming" || method.methodKind === "bidi_streaming"
      ? streamOf(schema, mediaTypes, "request")
      : contentOf(schema, mediaTypes, field === undefined);
  if (field !== undefined) {
    const required = isRequired(field) || undefined;
    return { description: commentOf(field), required, content: content(schemas.field(field)) };
  }
  // With body "*" the body holds all fields that the path does not bind.
  const rest = input.fields.filter((inner) => !bound.includes(inner.name));
  if (rest.length === 0 && WITHOUT_BODY.has(route.method)) return undefined;
  const schema = rest.length === input.fields.length ? schemas.message(input) : schemas.object(rest);
  const required = rest.some(isRequired) || undefined;
  const isUpload = multipart && (method.methodKind === "unary" || method.methodKind === "server_streaming");
  const parts = isUpload && { "multipart/form-data": { schema: schemas.parts(rest) } };
  return { required, content: { ...content(schema), ...parts } };
}

function response(method: DescMethod, route: Route, schemas: Schemas, mediaTypes: MediaTypes): JsonObject {
  const field = fieldByName(method.output, route.responseBody);
  const type = field === undefined ? method.output : messageType(field);
  const streaming = method.methodKind === "server_streaming" || method.methodKind === "bidi_streaming";
  const description = (field ? commentOf(field) : summaryOf(method.output).summary) ?? "Success.";
  if (isHttpBody(type)) return { description, content: RAW };
  const schema = field === undefined ? schemas.message(method.output) : fieldSchema(field, schemas);
  if (!streaming) return { description, content: contentOf(schema, mediaTypes) };
  return {
    description: `${description}\n\nA stream: one message per line, event or array element, chosen by \`Accept\`.`,
    content: streamOf(schema, mediaTypes, "response"),
  };
}

/** Describes a response field. An unset well-known type is `null`. */
function fieldSchema(field: DescField, schemas: Schemas): Schema {
  const schema = schemas.field(field);
  const nullable = field.fieldKind === "message" && TEXT_MESSAGES.has(field.message.typeName);
  return nullable ? { anyOf: [schema, { type: "null" }] } : schema;
}
