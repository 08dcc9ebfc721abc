import { createHash, timingSafeEqual } from "node:crypto";
import type { Interceptor } from "@connectrpc/connect";
import { ServiceError } from "../session/errors.ts";
import { bearerOf } from "./bearer.ts";

const digest = (text: string) => createHash("sha256").update(text).digest();

/**
 * Asks every RPC for one of the admin tokens. Digests are compared, all of them, so that time tells
 * neither length nor which one matched.
 */
export function adminAuthentication(tokens: readonly string[], onRefused: (method: string) => void): Interceptor {
  const digests = tokens.map(digest);
  return (next) => (request) => {
    const presented = digest(bearerOf(request.header) ?? "");
    let known = false;
    for (const one of digests) known = timingSafeEqual(one, presented) || known;
    if (known) return next(request);
    onRefused(request.method.name);
    throw new ServiceError("E001_AUTH_FAILURE");
  };
}
