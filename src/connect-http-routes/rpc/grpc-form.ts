import * as grpc from "@connectrpc/connect/protocol-grpc";
import * as web from "@connectrpc/connect/protocol-grpc-web";
import type { Exchange } from "../call/exchange.ts";

/** The form in which a unary call of gRPC carries its messages. */
export interface GrpcForm {
  readonly protocolName: "grpc" | "grpc-web";
  /** Whether the trailers are the last envelope of the body, because browsers cannot read HTTP trailers. */
  readonly isWeb: boolean;
  /** Whether messages are in the binary form of protobuf; otherwise they are JSON. */
  readonly binary: boolean;
  readonly contentType: string;
}

const GRPC = { protocolName: "grpc", isWeb: false } as const;
const GRPC_WEB = { protocolName: "grpc-web", isWeb: true } as const;
const BINARY: GrpcForm = { ...GRPC, binary: true, contentType: grpc.contentTypeProto };
const JSON_TEXT: GrpcForm = { ...GRPC, binary: false, contentType: grpc.contentTypeJson };
const WEB_BINARY: GrpcForm = { ...GRPC_WEB, binary: true, contentType: web.contentTypeProto };
const WEB_JSON_TEXT: GrpcForm = { ...GRPC_WEB, binary: false, contentType: web.contentTypeJson };

/** Returns the form of a call. Returns undefined if it is neither a gRPC call over HTTP/2 nor a binary gRPC-Web call. */
export function readGrpcForm({ method, headers, fullDuplex }: Exchange<unknown>): GrpcForm | undefined {
  if (method !== "POST") return undefined;
  const contentType = headers.get("content-type");
  const type = fullDuplex ? grpc.parseContentType(contentType) : undefined;
  if (type !== undefined) return type.binary ? BINARY : JSON_TEXT;
  const webType = web.parseContentType(contentType);
  if (webType === undefined || webType.text) return undefined;
  return webType.binary ? WEB_BINARY : WEB_JSON_TEXT;
}
