/** Translates failures of the domain to the errors that RPC callers (and, through them, HTTP callers) see. No other module does. */
import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorDetailSchema } from "../../../../gen/auth/v1/session_pb.ts";
import { dpopChallenge } from "../../../platform/dpop/proof.ts";
import { retryAfter } from "../../../platform/listener/handler.ts";
import { ERRORS, type ErrorCode, type FieldViolation, ServiceError } from "../../session/errors.ts";
import { StoreBusy, StoreUnavailable } from "../../session/ports.ts";
import { CallError } from "./call-error.ts";
import { explainJsonFault } from "./json-fault.ts";

const RPC_CODES = {
  unauthenticated: Code.Unauthenticated,
  invalid_argument: Code.InvalidArgument,
  failed_precondition: Code.FailedPrecondition,
  permission_denied: Code.PermissionDenied,
  not_found: Code.NotFound,
  unimplemented: Code.Unimplemented,
  resource_exhausted: Code.ResourceExhausted,
  aborted: Code.Aborted,
  canceled: Code.Canceled,
  deadline_exceeded: Code.DeadlineExceeded,
  internal: Code.Internal,
  unavailable: Code.Unavailable,
} as const;

/** The codes of errors that Connect itself raises: for deadlines, message sizes, and callers that disconnect. */
const FRAMEWORK_CODES = new Map<Code, ErrorCode>([
  [Code.InvalidArgument, "E400_INVALID_REQUEST"],
  [Code.NotFound, "E404_NOT_FOUND"],
  [Code.Unimplemented, "E404_NOT_FOUND"],
  [Code.ResourceExhausted, "E413_TOO_LARGE"],
  [Code.Canceled, "E499_CANCELED"],
  [Code.Aborted, "E499_CANCELED"],
  [Code.DeadlineExceeded, "E504_DEADLINE_EXCEEDED"],
  [Code.Unavailable, "E503_UNAVAILABLE"],
]);

/** The codes that keep their meaning while a message is read. All other errors that are raised then mean that the message is bad. */
const CODES_WHILE_READING = new Map(FRAMEWORK_CODES);
CODES_WHILE_READING.delete(Code.NotFound);
CODES_WHILE_READING.delete(Code.Unimplemented);

/** The headers that responses with these codes need (RFC 9110 sections 10.2.3 and 11.6.1). */
const HEADERS: Partial<Record<ErrorCode, Record<string, string>>> = {
  E001_AUTH_FAILURE: { "www-authenticate": "Bearer" },
  E429_RATE_LIMITED: { "retry-after": "1" },
  E503_UNAVAILABLE: { "retry-after": "1" },
};

/** The code of each error that this module has built. Decoding the code from the error's detail would take as long as a small request. */
const CODES = new WeakMap<ConnectError, ErrorCode>();

function build(
  code: ErrorCode,
  message: string,
  headers: Readonly<Record<string, string>> | undefined,
  cause: unknown,
  fieldViolations: readonly FieldViolation[] = [],
  rpcCode: Code = RPC_CODES[ERRORS[code].rpc],
) {
  const detail = { desc: ErrorDetailSchema, value: { code, fieldViolations: [...fieldViolations] } };
  const error = new CallError(message, rpcCode, headers ?? {}, [detail], cause);
  CODES.set(error, code);
  return error;
}

const SHARED = new WeakSet<ConnectError>();

const STALE = 'error_description="stale"';

/** Errors that any caller can cause, built once, because stack traces are expensive. Requests share them, so they must not be changed. */
export const SHARED_ERRORS = {
  noCredential: shared("E001_AUTH_FAILURE"),
  /** A bearer credential was presented and is proven invalid (RFC 6750 section 3.1). */
  invalidToken: shared("E001_AUTH_FAILURE", { "www-authenticate": 'Bearer error="invalid_token"' }),
  /** The access token says what is not true any more: its client refreshes once. */
  staleToken: shared("E001_AUTH_FAILURE", { "www-authenticate": `Bearer error="invalid_token", ${STALE}` }),
  staleBoundToken: shared("E001_AUTH_FAILURE", { "www-authenticate": `${dpopChallenge("invalid_token")}, ${STALE}` }),
  /** A bearer credential was presented with the scheme DPoP and is proven invalid (RFC 9449 section 7.1). */
  invalidBoundToken: shared("E001_AUTH_FAILURE", { "www-authenticate": dpopChallenge("invalid_token") }),
  /** A token came with the scheme DPoP and a proof that is not accepted. */
  badProof: shared("E001_AUTH_FAILURE", { "www-authenticate": dpopChallenge("invalid_dpop_proof") }),
  /** A token came with the scheme DPoP, and its proof needs the nonce of this response (RFC 9449 section 9). */
  nonceRequired: shared("E001_AUTH_FAILURE", { "www-authenticate": dpopChallenge("use_dpop_nonce") }),
  /** The token in the body of a request is proven invalid. OAuth's form of this error has no challenge (RFC 6749 section 5.2). */
  invalidGrant: shared("E001_AUTH_FAILURE", {}),
  crossSite: shared("E403_FORBIDDEN"),
  notFound: shared("E404_NOT_FOUND"),
  unknownEncoding: shared("E415_UNSUPPORTED_MEDIA_TYPE"),
  /** Over gRPC an unknown compression is `unimplemented`, as gRPC prescribes (compression.md). */
  unknownGrpcEncoding: shared("E415_UNSUPPORTED_MEDIA_TYPE", undefined, Code.Unimplemented),
  overloaded: shared("E503_UNAVAILABLE"),
  retryLater: shared("E503_UNAVAILABLE"),
  stalled: shared("E503_UNAVAILABLE"),
  canceled: shared("E499_CANCELED"),
} as const;

function shared(code: ErrorCode, headers = HEADERS[code], rpcCode?: Code): ConnectError {
  const error = build(code, ERRORS[code].message, headers, undefined, [], rpcCode);
  SHARED.add(error);
  return error;
}

/** Returns whether an error is created once for many requests, so that its response can be prepared. */
export function isShared(error: ConnectError): boolean {
  return SHARED.has(error);
}

/** The rate limit errors, by their `Retry-After`. The longest window of a rate limit bounds their number. */
const rateLimitErrors = new Map<string, ConnectError>();

export function rateLimited(retryAfterMs: number): ConnectError {
  const seconds = retryAfter(retryAfterMs);
  let error = rateLimitErrors.get(seconds);
  if (error === undefined) {
    error = shared("E429_RATE_LIMITED", { "retry-after": seconds });
    rateLimitErrors.set(seconds, error);
  }
  return error;
}

/** Returns the code (docs/reference/errors.md) that an error carries; undefined for an error that Connect has raised. */
export function errorCodeOf(error: ConnectError): ErrorCode | undefined {
  const known = CODES.get(error);
  if (known !== undefined) return known;
  const code = error.findDetails(ErrorDetailSchema)[0]?.code;
  return code !== undefined && Object.hasOwn(ERRORS, code) ? (code as ErrorCode) : undefined;
}

/** @param headers default: those that responses with this code need */
export function errorOf(error: ServiceError, headers = HEADERS[error.code]): ConnectError {
  return build(error.code, error.message, headers, error, error.fieldViolations);
}

/** @param onBug receives errors that no rule covers. The caller gets E500_INTERNAL without their text. */
export function toConnectError(error: unknown, onBug: (error: unknown) => void): ConnectError {
  if (error instanceof ConnectError && errorCodeOf(error) !== undefined) return error;
  if (error instanceof ServiceError) return errorOf(error);
  if (error instanceof StoreBusy) return SHARED_ERRORS.overloaded;
  if (error instanceof StoreUnavailable) {
    return build("E503_UNAVAILABLE", ERRORS.E503_UNAVAILABLE.message, HEADERS.E503_UNAVAILABLE, error);
  }
  const known = error instanceof ConnectError ? FRAMEWORK_CODES.get(error.code) : undefined;
  if (known !== undefined) return translate(error as ConnectError, known);
  onBug(error);
  return build("E500_INTERNAL", ERRORS.E500_INTERNAL.message, undefined, undefined);
}

/** Translates an error that was raised while a request was read. Such an error is the caller's fault, whatever its code. */
export function faultOfCaller(error: unknown): ConnectError {
  const raised = ConnectError.from(error);
  if (errorCodeOf(raised) !== undefined) return raised;
  return translate(raised, CODES_WHILE_READING.get(raised.code) ?? "E400_INVALID_REQUEST");
}

/** Returns the error for a call that Connect has aborted: its deadline has passed, or its caller has reset the stream. */
export function aborted(error: ConnectError): ConnectError {
  return translate(error, FRAMEWORK_CODES.get(error.code) ?? "E499_CANCELED");
}

function translate(error: ConnectError, code: ErrorCode): ConnectError {
  // Connect's text on a bad message is sent because it names the field. For other errors the text of docs/reference/errors.md is sent.
  const { rawMessage } = error;
  const message = code === "E400_INVALID_REQUEST" ? (explainJsonFault(rawMessage) ?? rawMessage) : ERRORS[code].message;
  // gRPC prescribes this code if a method takes one message and another number is sent (statuscodes.md).
  const rpcCode = code === "E400_INVALID_REQUEST" && error.code === Code.Unimplemented ? error.code : undefined;
  return build(code, message, HEADERS[code], error, [], rpcCode);
}
