/** Checks how callers of Connect, gRPC and gRPC-Web encode their messages. The routes of the HTTP layer have a check of their own. */
import { base64Decode } from "@bufbuild/protobuf/wire";
import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import { acceptCompression } from "../connect-options.ts";
import { SHARED_ERRORS } from "../errors/connect-errors.ts";

type Encoded = Pick<
  HandlerContext,
  "protocolName" | "requestMethod" | "requestHeader" | "responseHeader" | "url" | "method"
>;

const ACCEPTED = acceptCompression.map(({ name }) => name);
const KNOWN: ReadonlySet<string> = new Set(["identity", ...ACCEPTED]);

/**
 * Refuses an unknown compression, and a message in a query that is not base64 although the query says so (`base64=1`). connect-es would
 * refuse both, but with errors that differ from its other errors only by their text.
 */
export function refuseUnknownEncoding(context: Encoded): ConnectError | undefined {
  const { protocolName, requestMethod, requestHeader, url } = context;
  const query = protocolName === "connect" && requestMethod === "GET" ? new URL(url).searchParams : undefined;
  const compression = query ? query.get("compression") : requestHeader.get(compressionHeader(context));
  if (compression !== null && !KNOWN.has(compression)) return unknownEncoding(context);
  return query?.get("base64") === "1" ? refuseBadBase64(query.get("message") ?? "") : undefined;
}

/** Returns the error for an unknown compression. The response lists the accepted ones in the header that its protocol has for them. */
function unknownEncoding(context: Encoded): ConnectError {
  const name = compressionHeader(context).replace(/(?:content-)?encoding$/, "accept-encoding");
  context.responseHeader.set(name, ACCEPTED.join(","));
  return context.protocolName === "connect" ? SHARED_ERRORS.unknownEncoding : SHARED_ERRORS.unknownGrpcEncoding;
}

function compressionHeader({ protocolName, method }: Encoded): string {
  if (protocolName !== "connect") return "grpc-encoding";
  return method.methodKind === "unary" ? "content-encoding" : "connect-content-encoding";
}

function refuseBadBase64(message: string): ConnectError | undefined {
  try {
    base64Decode(message);
    return undefined;
  } catch (cause) {
    return new ConnectError("the message is not base64", Code.InvalidArgument, undefined, undefined, cause);
  }
}
