import type { AdminAccess, Scope } from "../../session/admin-access.ts";
import type { RefusalReason } from "../../session/errors.ts";
import { bearerOf } from "../bearer.ts";

/** A client certificate as the connection knows it. */
export type ClientCertificate = {
  /** Whether an authority that we trust has issued it, for clients, and it was valid when the connection was made. */
  readonly verified: boolean;
  /** Its subject's common name and its alternative names: DNS names and URIs. */
  readonly names: readonly string[];
  /** ms since the epoch. */
  readonly expiresAt: number;
};

/** A caller of the admin API whose credential is in order. */
export type AdminCaller = {
  /** For the audit. */
  readonly name: string;
  /** Whether the credential has this scope now: it may be withdrawn while a stream runs. */
  readonly may: (scope: Scope) => boolean;
};

export type Identified =
  | { readonly ok: true; readonly caller: AdminCaller }
  | { readonly ok: false; readonly reason: RefusalReason };

/** Who calls: by the bearer token, or where no `Authorization` is sent by the client certificate. */
export function identifyAdmin(
  access: AdminAccess,
  headers: { get(name: "authorization"): string | null },
  certificate: ClientCertificate | undefined,
  now: () => number = Date.now,
): Identified {
  const token = bearerOf(headers);
  if (token !== undefined) {
    if (token === "") return { ok: false, reason: "malformed" };
    const admin = access.byToken(token);
    if (admin === undefined) return { ok: false, reason: "forged" };
    return {
      ok: true,
      caller: { name: admin.name, may: (scope) => access.byToken(token)?.scopes.has(scope) ?? false },
    };
  }
  if (headers.get("authorization") !== null || certificate === undefined) return { ok: false, reason: "absent" };
  if (!certificate.verified) return { ok: false, reason: "forged" };
  const { names, expiresAt } = certificate;
  if (now() >= expiresAt) return { ok: false, reason: "expired" };
  const name = access.byCertificate(names)?.name ?? `certificate of ${names[0] ?? "nobody"}`;
  const may = (scope: Scope) => now() < expiresAt && (access.byCertificate(names)?.scopes.has(scope) ?? false);
  return { ok: true, caller: { name, may } };
}
