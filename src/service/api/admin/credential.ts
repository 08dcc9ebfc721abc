import type { PeerCertificate } from "../../../platform/listener/client-certificate.ts";
import { bearerToken } from "../../../platform/net/bearer-token.ts";
import type { Admin, AdminAccess, Scope } from "../../session/admin/access.ts";
import type { RefusalReason } from "../../session/errors.ts";

export type AdminCaller = {
  /** The name by which the audit log identifies the caller. */
  readonly name: string;
  /** The client whose sessions the caller may receive signals of; undefined for those of all clients. */
  readonly clientId: string | undefined;
  /** Whether the credential has this scope now: it may be withdrawn while a stream runs. */
  readonly may: (scope: Scope) => boolean;
};

export type Identified =
  | { readonly ok: true; readonly caller: AdminCaller }
  | { readonly ok: false; readonly reason: RefusalReason };

export type ClientCredential = { readonly id: string; readonly secret: string };

/** Identifies the caller by the name and the value of an admin token. The time it takes does not depend on what is wrong. */
export function identifyClient(access: AdminAccess, { id, secret }: ClientCredential): Identified {
  const admin = access.byToken(secret);
  return identified(access, admin?.name === id ? admin : undefined, secret);
}

function identified(access: AdminAccess, admin: Admin | undefined, token: string): Identified {
  if (admin === undefined) return { ok: false, reason: "forged" };
  const inForce = () => (access.holds(admin) ? admin : access.byToken(token));
  const { name, clientId } = admin;
  return { ok: true, caller: { name, clientId, may: (scope) => inForce()?.scopes.has(scope) ?? false } };
}

const BASIC = /^basic +([A-Za-z0-9+/]+={0,2})$/i;
const utf8 = new TextDecoder("utf-8", { fatal: true });

/**
 * Returns the client of an `Authorization` header with the scheme Basic (RFC 7617), whose parts are encoded as in forms (RFC 6749 section
 * 2.3.1). Returns undefined for any other header, and an empty secret, which no token has, if the header is malformed.
 */
export function basicCredential(authorization: string | null): ClientCredential | undefined {
  if (authorization === null || !/^basic\b/i.test(authorization)) return undefined;
  try {
    const text = utf8.decode(Buffer.from(BASIC.exec(authorization)?.[1] ?? "", "base64"));
    const colon = text.indexOf(":");
    if (colon > 0) return { id: decodeForm(text.slice(0, colon)), secret: decodeForm(text.slice(colon + 1)) };
  } catch {
    // The bytes are not UTF-8, or an escape is malformed, and so is the credential.
  }
  return { id: "", secret: "" };
}

/** @throws URIError if an escape is malformed */
function decodeForm(text: string): string {
  return decodeURIComponent(text.replaceAll("+", " "));
}

/** Identifies the caller by the bearer token, or by the client certificate if no `Authorization` header is sent. */
export function identifyAdmin(
  access: AdminAccess,
  authorization: string | null | undefined,
  certificate: PeerCertificate | undefined,
  now: () => number = Date.now,
): Identified {
  const token = bearerToken(authorization);
  if (token !== undefined) {
    return token === "" ? { ok: false, reason: "malformed" } : identified(access, access.byToken(token), token);
  }
  if (typeof authorization === "string" || certificate === undefined) return { ok: false, reason: "absent" };
  if (!certificate.verified) return { ok: false, reason: "forged" };
  const { names, expiresAt } = certificate;
  if (now() >= expiresAt) return { ok: false, reason: "expired" };
  const { name = `certificate of ${names[0] ?? "nobody"}`, clientId } = access.byCertificate(names) ?? {};
  const may = (scope: Scope) => now() < expiresAt && (access.byCertificate(names)?.scopes.has(scope) ?? false);
  return { ok: true, caller: { name, clientId, may } };
}
