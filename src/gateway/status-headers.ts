import type { ClientHttp2Stream, IncomingHttpHeaders } from "node:http2";
import { decodeBinaryHeader } from "@connectrpc/connect";
import { StatusSchema } from "../../gen/google/rpc/status_pb.ts";

/**
 * Repairs a status that connect-es cannot read, in place, so that it keeps its code: an error that cannot be read would look like a lost
 * connection. Invalid values must neither cause an error nor discard the message (PROTOCOL-HTTP2.md, Status-Message).
 */
export function repairStatus(headers: IncomingHttpHeaders): void {
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
