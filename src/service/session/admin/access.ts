/** What internal services may do, and the port between the admin API and their credentials. */

/** The scopes that a credential of the admin API can have. */
export const SCOPES = [
  "sessions:create",
  "sessions:read",
  "sessions:update",
  "sessions:revoke",
  "subjects:forget",
  "subjects:export",
  "introspect",
  "tokens:exchange",
  "watch",
  "metrics",
  "signals:manage",
  "signals:read",
  "signals:receive",
] as const;
export type Scope = (typeof SCOPES)[number];

/** A caller of the admin API. The name is for the audit. */
export type Admin = {
  readonly name: string;
  readonly scopes: ReadonlySet<Scope>;
  /** The client whose sessions the caller may receive signals of; undefined for those of all clients. */
  readonly clientId?: string | undefined;
};

export interface AdminAccess {
  byToken(token: string): Admin | undefined;
  /** Returns whether the credential of an admin that was found earlier is still valid. This costs less than finding the admin again. */
  holds(admin: Admin): boolean;
  /** Returns the first configured credential that has one of the names. @param names of a verified client certificate */
  byCertificate(names: readonly string[]): Admin | undefined;
}
