import type { DescMessage, DescService } from "@bufbuild/protobuf";
import { AnySchema } from "@bufbuild/protobuf/wkt";
import type { RouteTable } from "connect-http-routes/descriptors";
import { commentOf } from "./comments.ts";
import { contentOf, FORM, type MediaTypes } from "./content.ts";
import type { HandlerOptions } from "./handler-options.ts";
import { isObject, type Json, type JsonObject, mergePatch, unique } from "./json.ts";
import { describeOperation } from "./operation.ts";
import type { Overlay } from "./overlay.ts";
import { createPaths } from "./paths.ts";
import { Schemas } from "./schemas.ts";

/** The methods of an OpenAPI 3.1 path item. */
const METHODS = ["GET", "PUT", "POST", "DELETE", "OPTIONS", "HEAD", "PATCH", "TRACE"];

/** The media type of `problemEncoder` of the runtime (RFC 9457). */
export const PROBLEM = "application/problem+json";

export interface DocumentOptions {
  /** The options of the handler that serves the routes. Default: none, the handler has no others than required. */
  readonly handler?: HandlerOptions;
  /** The media types of the handler beside JSON and those of `handler`. */
  readonly mediaTypes?: MediaTypes;
  /** Whether enums have no other values than those with names. Default: false, the runtime writes other values as numbers. */
  readonly closedEnums?: boolean;
  /** URLs or paths below which the routes are served. Default: `requestPathPrefix`, or `/`. */
  readonly servers?: readonly string[];
}

/**
 * Creates one OpenAPI 3.1 document (spec.openapis.org/oas/v3.1) for all services. Every binding is an operation.
 * @throws Error if the overlay names an RPC that has no route or a security scheme that it does not define, or if it does not describe the
 * failures of a failure encoder of the handler's own
 */
export function describeServices(
  tables: readonly RouteTable[],
  overlay: Overlay,
  { handler = {}, mediaTypes: others = [], closedEnums = false, servers }: DocumentOptions = {},
): JsonObject {
  const schemas = new Schemas({ ...handler.jsonOptions, closedEnums, isSent: sentMessages(tables) });
  const mediaTypes = [...others, ...mediaTypesOf(handler)];
  const pathFor = createPaths();
  const paths: Record<string, Record<string, Json>> = {};
  const operationIds = new Set<string>();
  const rpcs = new Set(["*"]);
  const tagOf = shortNames(tables.map((table) => table.service));
  for (const { service, routes } of tables) {
    const tag = tagOf(service);
    for (const route of routes) {
      const method = service.method[route.rpc];
      if (method === undefined) continue;
      const { path, parameters } = pathFor(route);
      const operationId = unique(operationIds, `${tag}_${method.name}`);
      const rpc = `${service.typeName}.${method.name}`;
      rpcs.add(rpc);
      let operation: Json = describeOperation(method, route, parameters, { tag, operationId }, schemas, {
        ...handler,
        mediaTypes,
      });
      for (const name of ["*", rpc]) operation = mergePatch(operation, overlay.operations?.[name] ?? {});
      paths[path] ??= {};
      put(paths[path], route.method, operation);
    }
  }
  const stray = Object.keys(overlay.operations ?? {}).find((name) => !rpcs.has(name));
  if (stray !== undefined) throw new Error(`the overlay names ${stray}, which has no route`);
  const failure =
    handler.failureEncoder?.contentType === PROBLEM
      ? { [PROBLEM]: { schema: schemas.add("Problem", problemSchema(schemas)) } }
      : contentOf(schemas.add("google.rpc.Status", statusSchema(schemas)), mediaTypes);
  const document: JsonObject = {
    openapi: "3.1.1",
    info: { title: tables.map(({ service }) => tagOf(service)).join(", "), version: "0.0.0" },
    servers: (servers ?? [handler.requestPathPrefix ?? "/"]).map((url) => ({ url })),
    security: [],
    tags: tables.map(({ service }) => ({ name: tagOf(service), description: commentOf(service) })),
    paths,
    components: {
      schemas: schemas.components(),
      responses: { default: { description: "Failure.", content: failure } },
    },
  };
  const patched = mergePatch(document, overlay.document ?? {});
  checkFailures(handler, overlay);
  checkSecurity(patched);
  return isObject(patched) ? patched : document;
}

/** @throws Error if nothing describes the failures of an encoder whose form is not known */
function checkFailures({ failureEncoder }: HandlerOptions, overlay: Overlay): void {
  if (failureEncoder === undefined || failureEncoder.contentType === PROBLEM) return;
  const own = memberOf(memberOf(memberOf(overlay.document, "components"), "responses"), "default");
  if (own === undefined)
    throw new Error("the overlay must have document.components.responses.default: the failures of the failureEncoder");
}

function mediaTypesOf({ codecs = [], formPosts = false }: HandlerOptions): string[] {
  return [...[...codecs].flatMap(({ mediaTypes: [preferred] }) => preferred ?? []), ...(formPosts ? [FORM] : [])];
}

/** @throws Error for a requirement whose scheme the document lacks */
function checkSecurity(document: Json): void {
  const schemes = memberOf(memberOf(document, "components"), "securitySchemes");
  const operations = valuesOf(memberOf(document, "paths")).flatMap((item) => valuesOf(item));
  for (const place of [document, ...operations]) {
    const requirements = memberOf(place, "security");
    if (!Array.isArray(requirements)) continue;
    const stray = requirements
      .flatMap((each) => Object.keys(isObject(each) ? each : {}))
      .find((name) => memberOf(schemes, name) === undefined);
    if (stray !== undefined)
      throw new Error(`the overlay requires "${stray}", which is not among its components.securitySchemes`);
  }
}

const memberOf = (value: Json | undefined, name: string): Json | undefined =>
  isObject(value) ? value[name] : undefined;
const valuesOf = (value: Json | undefined): (Json | undefined)[] => (isObject(value) ? Object.values(value) : []);

/** Adds an operation. An HTTP method that OpenAPI 3.1 lacks goes into an extension, named after `additionalOperations` of OpenAPI 3.2. */
function put(item: Record<string, Json>, method: string, operation: Json): void {
  if (METHODS.includes(method)) {
    item[method.toLowerCase()] = operation;
    return;
  }
  const others = item["x-additionalOperations"];
  item["x-additionalOperations"] = { ...(isObject(others) ? others : {}), [method]: operation };
}

/** Returns which messages a request body can contain. */
function sentMessages(tables: readonly RouteTable[]): (type: DescMessage) => boolean {
  const sent = new Set<DescMessage>();
  const addAll = (type: DescMessage): void => {
    if (sent.has(type)) return;
    sent.add(type);
    for (const { message } of type.fields) if (message !== undefined) addAll(message);
  };
  for (const { service, routes } of tables) {
    for (const { rpc, body } of routes) {
      const input = service.method[rpc]?.input;
      if (input !== undefined && body !== "") addAll(input);
    }
  }
  return (type) => sent.has(type);
}

/** Describes the default failure response of the runtime (google/rpc/status.proto). */
function statusSchema(schemas: Schemas): JsonObject {
  return {
    type: "object",
    properties: {
      code: { type: "integer", format: "int32", description: "The code of google.rpc.Code." },
      message: { type: "string" },
      details: { type: "array", items: schemas.message(AnySchema) },
    },
  };
}

/** Describes the response of `problemEncoder` of the runtime (RFC 9457). */
function problemSchema(schemas: Schemas): JsonObject {
  const violation = {
    type: "object",
    properties: {
      detail: { type: "string" },
      pointer: { type: "string", description: "A JSON pointer into the body, as a fragment (RFC 6901)." },
      reason: { type: "string" },
      rule: { type: "string", description: "The rule of buf.validate that is broken." },
    },
    required: ["detail"],
  };
  return {
    type: "object",
    properties: {
      type: { type: "string", format: "uri-reference" },
      title: { type: "string" },
      status: { type: "integer", format: "int32", minimum: 100, maximum: 599 },
      detail: { type: "string" },
      code: { type: "string", description: "The code of the RPC, such as `not_found`." },
      errors: { type: "array", items: violation },
      details: { type: "array", items: schemas.message(AnySchema) },
    },
    required: ["type", "title", "status", "detail", "code"],
  };
}

/** Returns the names of services. Only names that collide include their packages. */
function shortNames(services: readonly DescService[]): (service: DescService) => string {
  return ({ name, typeName }) =>
    services.filter((other) => other.name === name).length > 1 ? typeName.replaceAll(".", "_") : name;
}
