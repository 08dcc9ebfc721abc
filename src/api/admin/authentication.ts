import { createHash, timingSafeEqual } from "node:crypto";
import type { HandlerContext } from "@connectrpc/connect";
import type { Audit } from "../../session/audit.ts";
import { ServiceError } from "../../session/errors.ts";
import { bearerOf } from "../bearer.ts";
import { callerKey } from "../caller.ts";
import { toConnectError } from "../errors/connect-errors.ts";

const digest = (text: string) => createHash("sha256").update(text).digest();

/**
 * Asks every RPC for one of the admin tokens, before its message is read: a caller without one is told nothing else.
 * Digests are compared, all of them, so that time tells neither length nor which one matched.
 */
export function adminAuthentication(tokens: readonly string[], audit: Audit): (context: HandlerContext) => void {
  const digests = tokens.map(digest);
  return ({ requestHeader, method, values }) => {
    const bearer = bearerOf(requestHeader);
    const presented = digest(bearer ?? "");
    let known = false;
    for (const one of digests) known = timingSafeEqual(one, presented) || known;
    if (known) return;
    const reason = bearer === undefined ? "absent" : bearer === "" ? "malformed" : "forged";
    audit({ event: "authn_failed", operation: method.name, reason, admin: true }, values.get(callerKey).address);
    throw toConnectError(new ServiceError("E001_AUTH_FAILURE"), () => {});
  };
}
