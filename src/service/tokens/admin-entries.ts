/** Parses ADMIN_TOKENS_FILE: the callers of the admin API and their scopes. The file has hashes, never a token. */
import { type Admin, SCOPES, type Scope } from "../session/admin/access.ts";
import { requireMembers } from "./members.ts";

export type AdminEntry = Admin & {
  /** The credential: a token's SHA-256, or a name in a client certificate. */
  readonly credential: { readonly sha256: Buffer } | { readonly certificate: string };
};

/** The list of admins cannot be used. The message names the position in the file, and never repeats a value. */
export class AdminTokensFault extends Error {
  override readonly name = "AdminTokensFault";
}

/**
 * Reads `{"admins":[{"name":…,"hash":…,"scopes":[…]},{"name":…,"certificate":…,"scopes":[…]}]}`. No member may be missing or unknown.
 * `hash` is the SHA-256 of the token, as hex or base64. A name may have several entries, so that its token can be rotated. A receiver of
 * signals may have a `client_id`, of whose sessions alone it gets them.
 *
 * @throws AdminTokensFault
 */
export function parseAdminEntries(text: string): readonly AdminEntry[] {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // The parser's own message is left out, because it quotes the text.
    throw new AdminTokensFault(
      "not JSON (an entry is printed by `admin-token create`; a bare token belongs in ADMIN_TOKENS)",
    );
  }
  const { admins } = requireMembers(AdminTokensFault, "the file", value, ["admins"]);
  if (!Array.isArray(admins)) throw new AdminTokensFault("admins: not a list");
  const entries = admins.map((each, index) => parseEntry(`admins[${index}]`, each));
  const credentials = entries.map(({ credential }) =>
    "sha256" in credential ? `hash ${credential.sha256.toString("hex")}` : `certificate ${credential.certificate}`,
  );
  const twice = credentials.findIndex((each, index) => credentials.indexOf(each) !== index);
  if (twice !== -1) throw new AdminTokensFault(`admins[${twice}]: its hash or certificate is there twice`);
  // Credentials of one name share their streams.
  const other = entries.findIndex(
    ({ name, clientId }) => entries.find((one) => one.name === name)?.clientId !== clientId,
  );
  if (other !== -1)
    throw new AdminTokensFault(`admins[${other}].client_id: differs from that of an entry of the same name`);
  return entries;
}

function parseEntry(at: string, value: unknown): AdminEntry {
  const entry = requireMembers(AdminTokensFault, at, value, ["name", "scopes"], ["hash", "certificate", "client_id"]);
  const { name, hash, certificate } = entry;
  if (typeof name !== "string" || !/^[A-Za-z0-9._@:-]{1,64}$/.test(name)) {
    throw new AdminTokensFault(`${at}.name: must be 1 to 64 letters, digits or any of . _ @ : -`);
  }
  if ((hash === undefined) === (certificate === undefined)) {
    throw new AdminTokensFault(`${at}: must have either hash or certificate`);
  }
  const scopes = parseScopes(`${at}.scopes`, entry.scopes);
  const clientId = parseClient(`${at}.client_id`, entry.client_id, scopes);
  if (hash !== undefined) return { name, scopes, clientId, credential: { sha256: parseHash(`${at}.hash`, hash) } };
  if (typeof certificate !== "string" || certificate.length === 0 || certificate.length > 255) {
    throw new AdminTokensFault(`${at}.certificate: must be a name in the certificate, of 1 to 255 characters`);
  }
  return { name, scopes, clientId, credential: { certificate } };
}

function parseClient(at: string, value: unknown, scopes: ReadonlySet<Scope>): string | undefined {
  if (value === undefined) return undefined;
  if (typeof value !== "string" || value === "" || Buffer.byteLength(value) > 255) {
    throw new AdminTokensFault(`${at}: must be a client id, of 1 to 255 bytes`);
  }
  // It restricts streams alone: with another scope the caller would see sessions of other clients in another way.
  if (scopes.size > 1 || !scopes.has("signals:receive")) {
    throw new AdminTokensFault(`${at}: is for callers whose only scope is signals:receive`);
  }
  return value;
}

function parseScopes(at: string, value: unknown): ReadonlySet<Scope> {
  if (!Array.isArray(value) || value.length === 0) throw new AdminTokensFault(`${at}: must be a list of scopes`);
  return new Set(
    value.map((each): Scope => {
      const scope = SCOPES.find((known) => known === each);
      if (scope === undefined) throw new AdminTokensFault(`${at}: each must be one of ${SCOPES.join(", ")}`);
      return scope;
    }),
  );
}

function parseHash(at: string, value: unknown): Buffer {
  const text = typeof value === "string" ? value : "";
  if (/^[0-9a-fA-F]{64}$/.test(text)) return Buffer.from(text, "hex");
  if (/^[A-Za-z0-9+/_-]{43}=?$/.test(text)) return Buffer.from(text, "base64");
  throw new AdminTokensFault(`${at}: must be the SHA-256 of a token, as 64 hex digits or as base64`);
}
