/** Calls of Connect by GET, whose message is in the query. */
import { base64Decode } from "@bufbuild/protobuf/wire";
import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";

type GetContext = Pick<HandlerContext, "protocolName" | "requestMethod" | "url">;

/**
 * Refuses a message that is not base64 although the query says so (`base64=1`): connect-es throws an error without a code for
 * it, which is the same as that of a defect.
 */
export function refuseBadBase64({ protocolName, requestMethod, url }: GetContext): void {
  if (requestMethod !== "GET" || protocolName !== "connect") return;
  const query = new URL(url).searchParams;
  if (query.get("base64") !== "1") return;
  try {
    base64Decode(query.get("message") ?? "");
  } catch (cause) {
    throw new ConnectError("the message is not base64", Code.InvalidArgument, undefined, undefined, cause);
  }
}
