import type { AdminAccess, Scope } from "../../session/admin-access.ts";
import type { RefusalReason } from "../../session/errors.ts";
import { bearerToken } from "../../verifier/bearer-token.ts";

export type ClientCertificate = {
  /** Whether a trusted authority has issued the certificate, for use by clients, and it was valid when the connection was made. */
  readonly verified: boolean;
  /** The subject's common name, and the alternative names: DNS names and URIs. */
  readonly names: readonly string[];
  /** In ms since the epoch. */
  readonly expiresAt: number;
};

export type AdminCaller = {
  /** The name by which the audit log identifies the caller. */
  readonly name: string;
  /** Whether the credential has this scope now: it may be withdrawn while a stream runs. */
  readonly may: (scope: Scope) => boolean;
};

type Identified =
  | { readonly ok: true; readonly caller: AdminCaller }
  | { readonly ok: false; readonly reason: RefusalReason };

/** Identifies the caller by the bearer token, or by the client certificate if no `Authorization` header is sent. */
export function identifyAdmin(
  access: AdminAccess,
  authorization: string | null | undefined,
  certificate: ClientCertificate | undefined,
  now: () => number = Date.now,
): Identified {
  const token = bearerToken(authorization);
  if (token !== undefined) {
    if (token === "") return { ok: false, reason: "malformed" };
    const admin = access.byToken(token);
    if (admin === undefined) return { ok: false, reason: "forged" };
    const inForce = () => (access.holds(admin) ? admin : access.byToken(token));
    return { ok: true, caller: { name: admin.name, may: (scope) => inForce()?.scopes.has(scope) ?? false } };
  }
  if (typeof authorization === "string" || certificate === undefined) return { ok: false, reason: "absent" };
  if (!certificate.verified) return { ok: false, reason: "forged" };
  const { names, expiresAt } = certificate;
  if (now() >= expiresAt) return { ok: false, reason: "expired" };
  const name = access.byCertificate(names)?.name ?? `certificate of ${names[0] ?? "nobody"}`;
  const may = (scope: Scope) => now() < expiresAt && (access.byCertificate(names)?.scopes.has(scope) ?? false);
  return { ok: true, caller: { name, may } };
}
