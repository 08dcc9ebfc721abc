/** The JSON body of error responses, `{"error":{"code":"…","message":"…"}}`, whose codes are those of docs/reference/errors.md. */
import type { ConnectError } from "@connectrpc/connect";
import type { Failure, FailureEncoder, FailureResponse } from "connect-http-routes";
import { ERRORS, type ErrorCode } from "../../session/errors.ts";
import { headersOf } from "./call-error.ts";
import { errorCodeOf, isShared, toConnectError } from "./connect-errors.ts";
import { explainJsonFault } from "./json-fault.ts";

const CODES: Record<Exclude<Failure["kind"], "rpc">, ErrorCode> = {
  no_route: "E404_NOT_FOUND",
  method_not_allowed: "E405_METHOD_NOT_ALLOWED",
  unsupported_media_type: "E415_UNSUPPORTED_MEDIA_TYPE",
  too_large: "E413_TOO_LARGE",
  body_timeout: "E504_DEADLINE_EXCEEDED",
  overloaded: "E503_UNAVAILABLE",
  bad_request: "E400_INVALID_REQUEST",
};

export function envelope(code: ErrorCode, message: string = ERRORS[code].message) {
  return { error: { code, message } };
}

/** Returns the code, message, headers and cause of a failure, for its response. @param onBug receives errors that no rule covers */
export function describeFailure(failure: Failure, onBug: (error: unknown) => void) {
  if (failure.kind !== "rpc") {
    const code = CODES[failure.kind];
    // The response to a bad request names the invalid field. Any other response has only the text of the table in docs/reference/errors.md.
    const message = failure.kind === "bad_request" ? explained(failure.error.rawMessage) : ERRORS[code].message;
    return { code, message, headers: {}, cause: undefined };
  }
  // The interceptors have translated most errors, but a deadline may expire outside of the interceptors.
  const error = toConnectError(failure.error, onBug);
  const code = errorCodeOf(error) ?? "E500_INTERNAL";
  return { code, message: error.rawMessage, headers: headersOf(error), cause: error.cause };
}

const explained = (message: string): string => explainJsonFault(message) ?? message;

export function envelopeEncoder(onBug: (error: unknown) => void): FailureEncoder {
  /** The responses to errors that are created once for all requests. Anybody can cause these errors, so each response is made only once. */
  const prepared = new WeakMap<ConnectError, FailureResponse>();
  return (failure) => {
    const known = failure.kind === "rpc" ? prepared.get(failure.error) : undefined;
    if (known !== undefined) return known;
    const { code, message, headers } = describeFailure(failure, onBug);
    const json = JSON.stringify(envelope(code, message));
    const isConstant = failure.kind === "rpc" && isShared(failure.error);
    const response = { status: ERRORS[code].http, headers, hasMetadata: failure.kind === "rpc", json, isConstant };
    if (isConstant) prepared.set(failure.error, response);
    return response;
  };
}
