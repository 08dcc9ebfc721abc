import { create, createRegistry, type DescMethod, type JsonObject, type JsonValue, toJson } from "@bufbuild/protobuf";
import { AnySchema, anyPack } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { codeToHttpStatus } from "@connectrpc/connect/protocol-connect";
import { BadInput, type InputPlace } from "../codec/bad-input.ts";
import { MalformedEscape } from "../routes/percent.ts";

interface FailureBase {
  /** The error that an RPC client receives. Its message is public. */
  readonly error: ConnectError;
  /** The default HTTP status. */
  readonly status: number;
}

/** Why a request failed: a closed union for failure encoders. */
export type Failure = FailureBase &
  (
    | { readonly kind: "no_route" }
    | { readonly kind: "method_not_allowed"; readonly allow: readonly string[] }
    | { readonly kind: "unsupported_media_type" }
    | { readonly kind: "too_large" }
    /** `field` is the field, parameter or header as the client named it; undefined if the whole part is invalid. */
    | { readonly kind: "bad_request"; readonly place: InputPlace; readonly field: string | undefined }
    /** Thrown by an interceptor or the implementation, or caused by an abort or a deadline. */
    | { readonly kind: "rpc" }
  );

/** The response to a failure. */
export interface FailureResponse {
  /** Default: the failure's status. */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: JsonValue;
}

export interface FailureContext {
  /** The RPC of the matched route; undefined if none matched. */
  readonly rpc: DescMethod | undefined;
  /** Whether a stream has started: the status is sent, and the body becomes the last message. */
  readonly inBand: boolean;
}

/** Encodes the response to a failure. */
export type FailureEncoder = (failure: Failure, context: FailureContext) => FailureResponse;

/** A thrown failure. */
export class FailureError extends Error {
  override readonly name = "FailureError";
  readonly failure: Failure;
  constructor(failure: Failure) {
    super(failure.error.message);
    this.failure = failure;
  }
}

export const failures = {
  noRoute: (): Failure => ({ kind: "no_route", status: 404, error: new ConnectError("no such route", Code.NotFound) }),
  methodNotAllowed: (allow: readonly string[]): Failure => ({
    kind: "method_not_allowed",
    status: 405,
    allow,
    error: new ConnectError("method not allowed", Code.Unimplemented),
  }),
  unsupportedMediaType: (what: string): Failure => ({
    kind: "unsupported_media_type",
    status: 415,
    error: new ConnectError(what, Code.InvalidArgument),
  }),
  tooLarge: (limit: number): Failure => ({
    kind: "too_large",
    status: 413,
    error: new ConnectError(`the body is larger than ${limit} bytes`, Code.ResourceExhausted),
  }),
  badRequest: (place: InputPlace, field: string | undefined, message: string): Failure => ({
    kind: "bad_request",
    status: 400,
    place,
    field,
    error: new ConnectError(message, Code.InvalidArgument),
  }),
};

/** Converts a thrown value to a failure. Unknown errors become "internal error", as on the RPC endpoint. */
export function failureFrom(reason: unknown): Failure {
  if (reason instanceof FailureError) return reason.failure;
  if (reason instanceof BadInput) return failures.badRequest(reason.place, reason.field, reason.message);
  if (reason instanceof MalformedEscape) return failures.badRequest("path", undefined, reason.message);
  const error =
    reason instanceof ConnectError
      ? reason
      : new ConnectError("internal error", Code.Internal, undefined, undefined, reason);
  return { kind: "rpc", error, status: codeToHttpStatus(error.code) };
}

/** The default encoder: `google.rpc.Status` as JSON. In a stream it is wrapped: `{"error": status}`. */
export const statusEncoder: FailureEncoder = ({ error }, { inBand }) => {
  const status = { code: error.code, message: error.rawMessage, details: error.details.map(detailJson) };
  return { body: inBand ? { error: status } : status };
};

/** The JSON of a detail as `google.protobuf.Any`. One without a JSON form keeps its type and its bytes. */
function detailJson(detail: ConnectError["details"][number]): JsonObject {
  if (!("desc" in detail)) {
    return { "@type": `type.googleapis.com/${detail.type}`, value: Buffer.from(detail.value).toString("base64") };
  }
  try {
    const any = anyPack(detail.desc, create(detail.desc, detail.value));
    return toJson(AnySchema, any, { registry: createRegistry(detail.desc) }) as JsonObject;
  } catch {
    return { "@type": `type.googleapis.com/${detail.desc.typeName}` };
  }
}
