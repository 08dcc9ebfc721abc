import { hash, timingSafeEqual } from "node:crypto";
import { loadProtected } from "../../platform/files/protected-file.ts";
import { type Admin, type AdminAccess, SCOPES, type Scope } from "../session/admin/access.ts";
import { type AdminEntry, AdminTokensFault, parseAdminEntries } from "./admin-entries.ts";

/** A token with every scope: one of ADMIN_TOKENS, or the token in DATA_DIR. */
export type FullToken = { readonly name: string; readonly token: string };

type AdminAccessEvents = {
  readonly onChange: (names: readonly string[]) => void;
  /** Called when the file is invalid or missing; the old entries stay valid. Each fault is reported once. */
  readonly onRefusal: (fault: AdminTokensFault) => void;
  /** Called when the file is valid again after a fault that was reported. */
  readonly onRecovery?: () => void;
};

export interface FollowedAdminAccess extends AdminAccess {
  grants(name: string, scope: Scope): boolean;
  /** Follows the file, if there is one, until the returned function is called. */
  watch(events: AdminAccessEvents, everyMs?: number): () => void;
}

const digest = (text: string) => hash("sha256", text, "buffer");

/** @throws AdminTokensFault if the file cannot be used */
export async function loadAdminAccess(
  fullTokens: readonly FullToken[],
  path: string | undefined,
): Promise<FollowedAdminAccess> {
  const fixed = fullTokens.map(
    ({ name, token }): AdminEntry => ({ name, scopes: new Set(SCOPES), credential: { sha256: digest(token) } }),
  );
  const file =
    path === undefined
      ? undefined
      : await loadProtected<readonly AdminEntry[], AdminTokensFault>({
          path,
          // Other users may read the file, which has only hashes of random tokens. If they could write it, they could grant any access.
          protection: { forbids: "write", mode: 0o644 },
          parse: (text) => [...fixed, ...parseAdminEntries(text)],
          Fault: AdminTokensFault,
        });
  const entries = () => file?.current ?? fixed;

  return {
    byToken: (token) => findByToken(entries(), token),
    holds: (admin) => (entries() as readonly Admin[]).includes(admin),
    byCertificate: (names) =>
      entries().find(({ credential }) => "certificate" in credential && names.includes(credential.certificate)),
    grants: (name, scope) => entries().some((entry) => entry.name === name && entry.scopes.has(scope)),
    watch({ onChange, ...faults }, everyMs) {
      const onEntries = (changed: readonly AdminEntry[]) => onChange(changed.map(({ name }) => name));
      return file?.watch({ onChange: onEntries, ...faults }, everyMs) ?? (() => {});
    },
  };
}

/** Compares the token with every entry, by digests, so that the time it takes reveals neither a length nor which entry matched. */
function findByToken(entries: readonly AdminEntry[], token: string): Admin | undefined {
  const presented = digest(token);
  let found: Admin | undefined;
  for (const entry of entries) {
    if ("sha256" in entry.credential && timingSafeEqual(entry.credential.sha256, presented)) found ??= entry;
  }
  return found;
}
