/** Failures as problem details (RFC 9457). */
import type { DescMessage, DescMethod, JsonObject, JsonValue } from "@bufbuild/protobuf";
import { codeToString } from "@connectrpc/connect/protocol-connect";
import { isJsonObject } from "../codec/json-values.ts";
import type { Failure, FailureContext, FailureEncoder, FailureResponse } from "./failure.ts";
import { detailJson } from "./status-encoder.ts";

export interface ProblemOptions {
  /**
   * Returns the URI of the kind of problem (`type`), with a title that is the same for all problems of this kind. Default: `about:blank`,
   * whose title is the phrase of the HTTP status.
   */
  readonly typeOf?: (
    failure: Failure,
    context: FailureContext,
  ) => { readonly type: string; readonly title: string } | undefined;
}

/** The phrases of the statuses that failures have (RFC 9110 section 15.5). */
const TITLES: Readonly<Record<number, string>> = {
  400: "Bad Request",
  401: "Unauthorized",
  403: "Forbidden",
  404: "Not Found",
  405: "Method Not Allowed",
  408: "Request Timeout",
  409: "Conflict",
  412: "Precondition Failed",
  413: "Content Too Large",
  415: "Unsupported Media Type",
  429: "Too Many Requests",
  499: "Client Closed Request",
  500: "Internal Server Error",
  501: "Not Implemented",
  502: "Bad Gateway",
  503: "Service Unavailable",
  504: "Gateway Timeout",
};

const CONTENT_TYPE = "application/problem+json";

/**
 * Creates an encoder for the option `failureEncoder`: `application/problem+json` with `type`, `title`, `status`, `detail`, the code of the
 * RPC as text (`code`), violations of `google.rpc.BadRequest` and `buf.validate.Violations` as `errors` (each with `detail` and, if a field
 * is named, `pointer`, a JSON pointer into the body), and all other details as `details`, as in `google.rpc.Status`.
 * @example
 *     import { createHttpHandler, problemEncoder } from "connect-http-routes";
 *     createHttpHandler({ routes, tables: [LibraryServiceRoutes], failureEncoder: problemEncoder() });
 */
export function problemEncoder({ typeOf }: ProblemOptions = {}): FailureEncoder {
  const encode = (failure: Failure, context: FailureContext): FailureResponse => {
    const { error, status, message } = failure;
    const details = error.details.map((detail) => detailJson(detail, context.registry));
    const errors = details.flatMap((detail) => violationsOf(detail, context.rpc) ?? []);
    const others = details.filter((detail) => violationsOf(detail, context.rpc) === undefined);
    const own = { type: "about:blank", title: TITLES[status] ?? "Error" };
    const problem: JsonObject = {
      ...(typeOf?.(failure, context) ?? own),
      status,
      detail: message,
      code: codeToString(error.code),
      ...(errors.length > 0 && { errors }),
      ...(others.length > 0 && { details: others }),
    };
    // In a stream the problem is a message, which has no media type of its own.
    return context.inBand ? { body: { error: problem } } : { headers: { "content-type": CONTENT_TYPE }, body: problem };
  };
  return Object.assign(encode, { contentType: CONTENT_TYPE });
}

/** Returns what a detail says about fields of the request; undefined for a detail of another type. */
function violationsOf(detail: JsonObject, rpc: DescMethod | undefined): JsonObject[] | undefined {
  switch (detail["@type"]) {
    case "type.googleapis.com/google.rpc.BadRequest":
      return objectsOf(detail.fieldViolations).map(({ field, description, reason }) => ({
        detail: textOf(description),
        ...(textOf(field) !== "" && { pointer: pointerOf(segmentsOf(textOf(field)), rpc?.input) }),
        ...(textOf(reason) !== "" && { reason: textOf(reason) }),
      }));
    case "type.googleapis.com/buf.validate.Violations":
      return objectsOf(detail.violations).map(({ field, ruleId, message }) => {
        const [path] = objectsOf([field ?? null]);
        const segments = objectsOf(path?.elements).flatMap(
          ({ fieldName, index, stringKey, intKey, uintKey, boolKey }) => [
            textOf(fieldName),
            ...[index, stringKey, intKey, uintKey, boolKey].filter((key) => key !== undefined).map(String),
          ],
        );
        return {
          detail: textOf(message),
          ...(segments.length > 0 && { pointer: pointerOf(segments, rpc?.input) }),
          ...(textOf(ruleId) !== "" && { rule: textOf(ruleId) }),
        };
      });
    default:
      return undefined;
  }
}

/** Splits the path of a field: `books[2].title` has the segments `books`, `2` and `title`. */
const segmentsOf = (path: string): string[] => path.split(/[.[\]]+/).filter(Boolean);

/** Returns a JSON pointer (RFC 6901) as a fragment. Names of fields are those that the message has in JSON. */
function pointerOf(segments: readonly string[], input: DescMessage | undefined): string {
  let type = input;
  let isInside = false;
  const names = segments.map((segment) => {
    // After a map or a list comes a key or an index.
    if (isInside) {
      isInside = false;
      return segment;
    }
    const field = type?.fields.find(({ name, jsonName }) => name === segment || jsonName === segment);
    type = field?.message;
    isInside = field?.fieldKind === "map" || field?.fieldKind === "list";
    return field?.jsonName ?? segment;
  });
  const escaped = names.map((name) => encodeURIComponent(name.replaceAll("~", "~0").replaceAll("/", "~1")));
  return `#${escaped.map((name) => `/${name}`).join("")}`;
}

const objectsOf = (value: JsonValue | undefined): JsonObject[] =>
  (Array.isArray(value) ? value : []).filter(isJsonObject);

const textOf = (value: JsonValue | undefined): string => (typeof value === "string" ? value : "");
