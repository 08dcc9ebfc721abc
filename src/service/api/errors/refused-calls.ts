/** Responses to calls that fail before a handler runs: errors of docs/reference/errors.md in the form of the call's protocol. */
import { Code, type ConnectError } from "@connectrpc/connect";
import {
  encodeEnvelope,
  type UniversalHandler,
  type UniversalServerRequest,
  type UniversalServerResponse,
} from "@connectrpc/connect/protocol";
import {
  codeToHttpStatus,
  endStreamFlag,
  endStreamToJson,
  errorToJsonBytes,
} from "@connectrpc/connect/protocol-connect";
import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import { trailerFlag, trailerSerialize } from "@connectrpc/connect/protocol-grpc-web";
import { ErrorDetailSchema } from "../../../../gen/auth/v1/session_pb.ts";
import { ERRORS, type ErrorCode, ServiceError } from "../../session/errors.ts";
import { CallError } from "./call-error.ts";
import { errorOf } from "./connect-errors.ts";

const CODES: Readonly<Record<number, ErrorCode>> = {
  405: "E405_METHOD_NOT_ALLOWED",
  415: "E415_UNSUPPORTED_MEDIA_TYPE",
};

/** Replaces Connect's response to an unsupported HTTP method or content type; returns undefined for any other response of Connect. */
export function refusedCall(
  { method }: Pick<UniversalServerRequest, "method">,
  { status, body }: UniversalServerResponse,
  { allowedMethods }: Pick<UniversalHandler, "allowedMethods">,
): UniversalServerResponse | undefined {
  const code = CODES[status];
  if (code === undefined || body !== undefined) return undefined;
  const allow = [...allowedMethods, "OPTIONS"].join(", ");
  if (method === "OPTIONS") return { status: 204, header: new Headers({ allow }) };
  const { headers, body: content } = connectError(code);
  const header = new Headers(headers);
  if (code === "E405_METHOD_NOT_ALLOWED") header.set("allow", allow);
  return { status, header, ...(method !== "HEAD" && { body: only(content) }) };
}

export type PlainResponse = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
};

/** Returns an error in the format of Connect's unary protocol, with the HTTP status of docs/reference/errors.md. */
export function connectError(code: ErrorCode, error = errorOf(new ServiceError(code))): PlainResponse {
  const body = Buffer.from(errorToJsonBytes(error, undefined));
  const headers = { "content-type": "application/json", "content-length": String(body.length) };
  return { status: ERRORS[code].http, headers, body };
}

const GRPC = /^application\/grpc(?:-web(?:-text)?)?(?:\+\w+)?(?=\s*(?:;|$))/i;

const UNKNOWN_METHOD = new CallError("no such method", Code.Unimplemented, {}, [
  { desc: ErrorDetailSchema, value: { code: "E404_NOT_FOUND" satisfies ErrorCode } },
]);

/** The response to a call of an unknown method, in Connect's format. Its code is not `not_found`, because known methods return that. */
export const unknownMethod: PlainResponse = connectError("E404_NOT_FOUND", UNKNOWN_METHOD);

/** Returns the response headers for an unknown method over gRPC and gRPC-Web, where only proxies respond 404; undefined for other calls. */
export function unknownGrpcMethod(method = "", contentType = ""): Readonly<Record<string, string>> | undefined {
  const [type] = GRPC.exec(contentType) ?? [];
  if (type === undefined || method !== "POST") return undefined;
  return Object.fromEntries(setTrailerStatus(new Headers({ "content-type": type.toLowerCase() }), UNKNOWN_METHOD));
}

/** Returns the response to a call that failed with `error`. @param type the content type of the request */
export function failedCall(error: ConnectError, type: string): UniversalServerResponse {
  const response = { status: 200, header: new Headers({ "content-type": type }) };
  if (type.startsWith("application/grpc-web")) {
    return { ...response, body: only(encodeEnvelope(trailerFlag, trailerSerialize(trailerOf(error)))) };
  }
  if (type.startsWith("application/grpc"))
    return { ...response, body: only(new Uint8Array()), trailer: trailerOf(error) };
  if (type.startsWith("application/connect+")) {
    const end = Buffer.from(JSON.stringify(endStreamToJson(new Headers(), error, undefined)));
    return { ...response, body: only(encodeEnvelope(endStreamFlag, end)) };
  }
  const body = errorToJsonBytes(error, undefined);
  const header = new Headers(error.metadata);
  header.set("content-type", "application/json");
  header.set("content-length", String(body.byteLength));
  return { status: codeToHttpStatus(error.code), header, body: only(body) };
}

function trailerOf(error: ConnectError): Headers {
  return setTrailerStatus(new Headers(), error);
}

export async function* only(bytes: Uint8Array): AsyncIterable<Uint8Array> {
  yield bytes;
}
