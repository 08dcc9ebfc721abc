import type { DescMessage, DescMethod, JsonValue, Message, Registry } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { codeToHttpStatus } from "@connectrpc/connect/protocol-connect";
import { internalError } from "../call/errors.ts";
import { BadInput, BodyTooLarge, type InputPlace } from "../codec/bad-input.ts";
import type { ChosenCodec } from "../codec/content-codec.ts";
import type { Payload } from "../codec/response-codec.ts";
import { ExpectedError } from "../routes/expected-error.ts";
import { MalformedEscape } from "../routes/percent.ts";

interface FailureBase {
  /** The HTTP status that an encoder uses by default. */
  readonly status: number;
  /** The public message. */
  readonly message: string;
  /** The thrown value; undefined if the request never reached an RPC. */
  readonly reason: unknown;
  /** The error that an RPC client receives. It is created on first use, because creating one costs more than a small response. */
  readonly error: ConnectError;
}

/** Why a request failed, as a closed union for failure encoders. */
export type Failure = FailureBase &
  (
    | { readonly kind: "no_route" }
    | { readonly kind: "method_not_allowed"; readonly allow: readonly string[] }
    /** `acceptEncoding` is set if the encoding of the body is the reason, not its type. */
    | { readonly kind: "unsupported_media_type"; readonly acceptEncoding?: string }
    | { readonly kind: "too_large" }
    /** The body, or a message of a request stream, has not arrived in time. */
    | { readonly kind: "body_timeout" }
    /** The handler has reached its limit of calls in flight, or of bodies in memory. */
    | { readonly kind: "overloaded" }
    /** `field` is the field, parameter or header as the client named it; undefined if the whole part is invalid. */
    | { readonly kind: "bad_request"; readonly place: InputPlace; readonly field: string | undefined }
    /** Thrown by an interceptor or the implementation, or caused by an abort or a deadline. */
    | { readonly kind: "rpc" }
  );

/** The response to a failure. */
export interface FailureResponse {
  /** The HTTP status. Default: the failure's status. */
  readonly status?: number;
  /** Headers by lower-case name. `content-type`, such as `application/problem+json`, is for JSON bodies. Default: `application/json`. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Whether `headers` already contains the metadata of the error that is to be sent. Default: false; the metadata is then sent too. */
  readonly hasMetadata?: boolean;
  /**
   * Whether the encoder returns this same object for every failure with the same response, which is then prepared once. It has no effect
   * without `hasMetadata`, or for failures before an RPC was called. Default: false.
   */
  readonly isConstant?: boolean;
  /** The body, which is written as JSON. Instead, an encoder may set `json`: a finished text, which many failures can share. */
  readonly body?: JsonValue;
  readonly json?: string;
  /** Makes the body as a message, for clients that accept a content type such as binary protobuf. Default: they receive JSON. */
  readonly message?: () => { readonly type: DescMessage; readonly value: Message };
}

export interface FailureContext {
  /** The RPC of the matched route; undefined if none matched. */
  readonly rpc: DescMethod | undefined;
  /** The path of the request as it was sent, without the query. */
  readonly path: string;
  /** Whether the failed response is a stream that has started. Its status was sent already, and the failure becomes its last message. */
  readonly inBand: boolean;
  /** The registry of message types, as in `jsonOptions`, with which error details are encoded. */
  readonly registry: Registry | undefined;
}

/** Encodes the response to a failure. */
export interface FailureEncoder {
  (failure: Failure, context: FailureContext): FailureResponse;
  /** The media type of all failures, from which an OpenAPI document knows their form. */
  readonly contentType?: string;
}

/** Carries a failure as an exception. */
export class FailureError extends ExpectedError {
  override readonly name = "FailureError";
  readonly failure: Failure;
  constructor(failure: Failure) {
    super(failure.message);
    this.failure = failure;
  }
}

/** The error of a request whose precondition does not hold (RFC 9110 section 13). Connect has no code for it. */
export class PreconditionFailed extends ConnectError {
  readonly #isOwn = true;
  constructor(header: "If-Match" | "If-None-Match") {
    super(`${header} does not hold`, Code.FailedPrecondition);
  }
  /** Tests the class. `instanceof` cannot: ConnectError redefines it so that it holds for every ConnectError. */
  static is(error: ConnectError | undefined): boolean {
    return error !== undefined && #isOwn in error && error.#isOwn;
  }
}

/** A failure that is the client's fault, found before any RPC was called. */
class RequestFailure implements FailureBase {
  readonly status: number;
  readonly message: string;
  readonly reason = undefined;
  readonly #code: Code;
  #error: ConnectError | undefined;

  constructor(status: number, message: string, code: Code) {
    this.status = status;
    this.message = message;
    this.#code = code;
  }

  get error(): ConnectError {
    this.#error ??= new ConnectError(this.message, this.#code);
    return this.#error;
  }
}

/** A value thrown by an interceptor or an implementation. */
class RpcFailure implements FailureBase {
  readonly kind = "rpc";
  readonly reason: unknown;
  #error: ConnectError | undefined;

  constructor(reason: unknown) {
    this.reason = reason;
    if (reason instanceof ConnectError) this.#error = reason;
  }

  get status(): number {
    if (PreconditionFailed.is(this.#error)) return 412;
    return codeToHttpStatus(this.#error?.code ?? Code.Internal);
  }

  get message(): string {
    return this.#error?.rawMessage ?? "internal error";
  }

  get error(): ConnectError {
    this.#error ??= internalError(this.reason);
    return this.#error;
  }
}

function requestFailure<const Own extends object>(status: number, message: string, code: Code, own: Own) {
  return Object.assign(new RequestFailure(status, message, code), own);
}

export const failures = {
  noRoute: (): Failure => requestFailure(404, "no such route", Code.NotFound, { kind: "no_route" }),
  methodNotAllowed: (allow: readonly string[]): Failure =>
    requestFailure(405, "method not allowed", Code.Unimplemented, { kind: "method_not_allowed", allow }),
  unsupportedMediaType: (message: string): Failure =>
    requestFailure(415, message, Code.InvalidArgument, { kind: "unsupported_media_type" }),
  unsupportedEncoding: (encoding: string): Failure =>
    requestFailure(415, `the content encoding ${encoding} is not supported, gzip is`, Code.InvalidArgument, {
      kind: "unsupported_media_type",
      acceptEncoding: "gzip",
    }),
  tooLarge: (limitBytes: number): Failure =>
    requestFailure(413, `the body is larger than ${limitBytes} bytes`, Code.ResourceExhausted, {
      kind: "too_large",
    }),
  expandsTooMuch: (maxRatio: number): Failure =>
    requestFailure(413, `the body decompresses to more than ${maxRatio} times its size`, Code.ResourceExhausted, {
      kind: "too_large",
    }),
  /** 408 Request Timeout (RFC 9110 section 15.5.9). */
  bodyTimeout: (): Failure =>
    requestFailure(408, "the body has not arrived in time", Code.DeadlineExceeded, { kind: "body_timeout" }),
  overloaded: (message: string): Failure => requestFailure(503, message, Code.Unavailable, { kind: "overloaded" }),
  badRequest: (place: InputPlace, field: string | undefined, message: string): Failure =>
    requestFailure(400, message, Code.InvalidArgument, { kind: "bad_request", place, field }),
};

/** Converts a thrown value to a failure. Unknown errors become "internal error", as on the RPC endpoint. */
export function failureFrom(reason: unknown): Failure {
  if (reason instanceof FailureError) return reason.failure;
  if (reason instanceof BadInput) return failures.badRequest(reason.place, reason.field, reason.message);
  if (reason instanceof BodyTooLarge) return failures.tooLarge(reason.limitBytes);
  if (reason instanceof MalformedEscape) return failures.badRequest("path", undefined, reason.message);
  return new RpcFailure(reason);
}

/** Whether a constant response contains neither metadata of the error nor facts of the request, so that it can be prepared once. */
export function isSameForAll({ kind }: Failure, { isConstant, hasMetadata }: FailureResponse): boolean {
  return isConstant === true && hasMetadata === true && kind === "rpc";
}

/** Returns the encoded content of a failure's response. */
export function failurePayload(response: FailureResponse, chosen: ChosenCodec | undefined): Payload {
  if (chosen?.codec.kind === "value") {
    const value = response.body ?? (JSON.parse(jsonOf(response)) as JsonValue);
    return { contentType: chosen.mediaType, content: chosen.codec.encode(value) };
  }
  const message = chosen && response.message?.();
  if (chosen === undefined || message === undefined)
    return { contentType: response.headers?.["content-type"] ?? "application/json", content: jsonOf(response) };
  return { contentType: chosen.mediaType, content: chosen.codec.encode(message.type, message.value) };
}

/**
 * Receives each error that clients see as "internal error": what an interceptor or an implementation has thrown if it is not a
 * ConnectError, and the reason why a response could not be encoded. It receives no error for which the failure encoder chooses a status
 * below 500.
 */
export type OnInternalError = (error: unknown, rpc: DescMethod | undefined) => void;

const logInternalError: OnInternalError = (error, rpc) => {
  console.error(`internal error${rpc === undefined ? "" : ` of ${rpc}`}:`, error);
};

/** Reports the cause of a failure if it is an internal error. */
export function reportInternalError(
  failure: Failure,
  { status = failure.status }: FailureResponse,
  { rpc }: FailureContext,
  onInternalError: OnInternalError = logInternalError,
): void {
  const { kind, reason } = failure;
  // When a client disconnects, the call is aborted. The reason depends on the runtime, and it is no internal error.
  const isAbort = !(reason instanceof Error) || reason.name === "AbortError";
  if (kind === "rpc" && !(reason instanceof ConnectError) && !isAbort && status >= 500) onInternalError(reason, rpc);
}

/** Returns the text of a failure's body. */
export function jsonOf(response: FailureResponse): string {
  return response.json ?? JSON.stringify(response.body ?? null);
}

/** Returns the error for a response of more than `limit` bytes, the same as in connect-es. */
export function tooLong(length: number, limit: number): ConnectError {
  const text = `message size ${length} is larger than configured writeMaxBytes ${limit}`;
  return new ConnectError(text, Code.ResourceExhausted);
}

/** Describes a response to the `onResponse` hook. */
export interface ResponseInfo<Source> {
  readonly request: Source;
  readonly method: string;
  readonly status: number;
  /** The RPC of the matched route; undefined if none matched. */
  readonly rpc: DescMethod | undefined;
  /** Why the request failed; undefined if it succeeded. */
  readonly failure: Failure | undefined;
}
