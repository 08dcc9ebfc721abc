import type { ClientHttp2Stream, IncomingHttpHeaders } from "node:http2";
import { Code, ConnectError, decodeBinaryHeader } from "@connectrpc/connect";
import { findTrailerError } from "@connectrpc/connect/protocol-grpc";
import { StatusSchema } from "../../gen/google/rpc/status_pb.ts";

export interface GrpcResult {
  readonly header: IncomingHttpHeaders;
  readonly trailer: IncomingHttpHeaders;
  readonly message: Uint8Array;
}

/** The length of a message's prefix in bytes: one byte of flags and 32 bits of length (PROTOCOL-HTTP2.md, Length-Prefixed-Message). */
export const PREFIX_BYTES = 5;

export function envelope(message: Uint8Array): Buffer {
  const framed = Buffer.allocUnsafe(PREFIX_BYTES + message.byteLength);
  framed[0] = 0;
  framed.writeUInt32BE(message.byteLength, 1);
  framed.set(message, PREFIX_BYTES);
  return framed;
}

export function messageOf(
  header: IncomingHttpHeaders,
  trailer: IncomingHttpHeaders,
  chunks: readonly Buffer[],
): Uint8Array {
  if (trailer["grpc-status"] !== "0") throw statusError(header, trailer);
  const [only] = chunks;
  const data = only !== undefined && chunks.length === 1 ? only : Buffer.concat(chunks);
  if (data.byteLength < PREFIX_BYTES) throw new ConnectError("protocol error: no response message", Code.Unimplemented);
  if (data[0] !== 0) throw new ConnectError("protocol error: a compressed message was not asked for", Code.Internal);
  const end = PREFIX_BYTES + data.readUInt32BE(1);
  if (data.byteLength !== end) throw new ConnectError("protocol error: not one response message", Code.Unimplemented);
  return data.subarray(PREFIX_BYTES, end);
}

function statusError(header: IncomingHttpHeaders, trailer: IncomingHttpHeaders): ConnectError {
  repairStatus(trailer);
  const error = findTrailerError(headersOf(trailer)) ?? new ConnectError("protocol error: no status", Code.Internal);
  if (trailer !== header) for (const [name, value] of headersOf(header)) error.metadata.append(name, value);
  return error;
}

/** Returns the error of a response that is not gRPC, such as that of a proxy. */
export function httpError(header: IncomingHttpHeaders): ConnectError | undefined {
  const { "content-type": type = "" } = header;
  const status = Number(header[":status"] ?? 200);
  if (status === 200) {
    if (header[":status"] === undefined || type.startsWith("application/grpc")) return undefined;
    return new ConnectError(`the response is no gRPC, its content type is "${type}"`, Code.Internal);
  }
  // The codes follow gRPC's http-grpc-status-mapping.md.
  const codes: Readonly<Record<number, Code>> = {
    400: Code.Internal,
    401: Code.Unauthenticated,
    403: Code.PermissionDenied,
    404: Code.Unimplemented,
    429: Code.Unavailable,
    502: Code.Unavailable,
    503: Code.Unavailable,
    504: Code.Unavailable,
  };
  return new ConnectError(`HTTP status ${status}`, codes[status] ?? Code.Unknown);
}

export function lost(cause: unknown): ConnectError {
  return new ConnectError("the connection was lost", Code.Unavailable, undefined, undefined, cause);
}

function headersOf(lines: IncomingHttpHeaders): Headers {
  const headers = new Headers();
  for (const [name, value] of Object.entries(lines)) {
    if (name.startsWith(":") || value === undefined) continue;
    for (const one of [value].flat()) headers.append(name, one);
  }
  return headers;
}

/**
 * Repairs a status that connect-es cannot read, in place: otherwise the error would lose its code and look like a lost connection. Invalid
 * values must neither cause an error nor discard the message (PROTOCOL-HTTP2.md, Status-Message).
 */
function repairStatus(headers: IncomingHttpHeaders): void {
  const { "grpc-status": status, "grpc-message": message, "grpc-status-details-bin": details } = headers;
  if (status === undefined || status === "0") return;
  if (typeof message === "string" && !isDecodable(message)) headers["grpc-message"] = encodeURIComponent(message);
  if (typeof details === "string" && codeOf(details) !== Number(status)) delete headers["grpc-status-details-bin"];
}

/** Repairs the gRPC status in the headers and trailers of a stream, before any listener that is added later reads them. */
export function repairStatusOf<Stream extends ClientHttp2Stream>(stream: Stream): Stream {
  return stream.on("response", repairStatus).on("trailers", repairStatus);
}

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

/** Returns the code in `grpc-status-details-bin`; undefined if the value cannot be decoded. */
function codeOf(details: string): number | undefined {
  try {
    return decodeBinaryHeader(details, StatusSchema).code;
  } catch {
    return undefined;
  }
}
