import { createHash, timingSafeEqual } from "node:crypto";
import type { HandlerContext } from "@connectrpc/connect";
import { ServiceError } from "../session/errors.ts";
import { bearerOf } from "./bearer.ts";
import { toConnectError } from "./errors.ts";

const digest = (text: string) => createHash("sha256").update(text).digest();

/**
 * Asks every RPC for one of the admin tokens, before its message is read: a caller without one is told nothing else.
 * Digests are compared, all of them, so that time tells neither length nor which one matched.
 */
export function adminAuthentication(
  tokens: readonly string[],
  onRefused: (method: string) => void,
): (context: HandlerContext) => void {
  const digests = tokens.map(digest);
  return ({ requestHeader, method }) => {
    const presented = digest(bearerOf(requestHeader) ?? "");
    let known = false;
    for (const one of digests) known = timingSafeEqual(one, presented) || known;
    if (known) return;
    onRefused(method.name);
    throw toConnectError(new ServiceError("E001_AUTH_FAILURE"), () => {});
  };
}
