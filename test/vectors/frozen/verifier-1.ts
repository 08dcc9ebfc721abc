/**
 * A verifier by version 1 of docs/reference/verifier-protocol.md, written by hand. It stands for deployed verifiers, which nobody can change. So it
 * imports nothing from the project, and is never changed either.
 */
import { createPublicKey, verify } from "node:crypto";

type Json = Readonly<Record<string, unknown>>;
type Jwk = Json & { readonly kid: string; readonly kty: string };

const decode = (segment = ""): Json => JSON.parse(Buffer.from(segment, "base64url").toString());

/** The state of the feed after the batches so far. */
export class Feed1 {
  isComplete = false;
  cursor = "";
  readonly #ended = new Set<string>();
  readonly #revokedKeys = new Set<string>();
  #revokedUntilMs = Number.NEGATIVE_INFINITY;

  apply(batch: Json): void {
    for (const { sessionId, expireTime, reason } of (batch.revocations ?? []) as readonly Json[]) {
      if (typeof sessionId !== "string" || Number.isNaN(Date.parse(String(expireTime))))
        throw new Error("no revocation");
      if (reason !== "expired") this.#ended.add(sessionId);
    }
    for (const kid of (batch.revokedKeyIds ?? []) as readonly string[]) this.#revokedKeys.add(kid);
    if (batch.revokedUntilTime !== undefined) {
      this.#revokedUntilMs = Math.max(this.#revokedUntilMs, Date.parse(String(batch.revokedUntilTime)));
    }
    if (typeof batch.cursor !== "string" || Number.isNaN(Date.parse(String(batch.asOfTime))))
      throw new Error("no batch");
    this.cursor = batch.cursor;
    this.isComplete ||= batch.caughtUp === true;
  }

  hasEnded(sid: unknown, createdAtMs: number): boolean {
    return this.#ended.has(String(sid)) || createdAtMs <= this.#revokedUntilMs;
  }

  hasRevoked(kid: unknown): boolean {
    return this.#revokedKeys.has(String(kid));
  }
}

/** Follows the feed over HTTP/1.1 and JSON, until it is aborted. */
export async function followFeed1(
  feed: Feed1,
  adminUrl: string,
  adminToken: string,
  signal: AbortSignal,
): Promise<void> {
  const request = Buffer.from(JSON.stringify({ cursor: feed.cursor }));
  const head = Buffer.alloc(5);
  head.writeUInt32BE(request.length, 1);
  const response = await fetch(`${adminUrl}/auth.admin.v1.SessionAdminService/WatchRevocations`, {
    ...{ method: "POST", body: Buffer.concat([head, request]), signal },
    headers: {
      ...{ authorization: `Bearer ${adminToken}`, "content-type": "application/connect+json" },
      "connect-protocol-version": "1",
    },
  });
  if (response.status !== 200) throw new Error(`the feed responds ${response.status}`);
  let rest = Buffer.alloc(0);
  for await (const bytes of response.body ?? []) {
    rest = Buffer.concat([rest, bytes]);
    while (rest.length >= 5 && rest.length >= 5 + rest.readUInt32BE(1)) {
      const end = 5 + rest.readUInt32BE(1);
      if (rest[0] !== 0) return;
      feed.apply(JSON.parse(rest.subarray(5, end).toString()));
      rest = rest.subarray(end);
    }
  }
}

export type Expected1 = { readonly issuer: string; readonly audience: string; readonly keys: readonly Jwk[] };

/** Returns `accepted`, or the rule that the token breaks. */
export function verdict1(token: string, { issuer, audience, keys }: Expected1, feed: Feed1): string {
  const [head, payload, signature = "", ...others] = token.split(".");
  if (others.length > 0 || signature.length !== 86 || token.length > 16_384) return "segments";
  const header = decode(head);
  if (Object.keys(header).some((name) => !["typ", "alg", "kid"].includes(name))) return "header members";
  if (header.typ !== "at+jwt") return "typ";
  if (feed.hasRevoked(header.kid)) return "revoked_key";
  const jwk = keys.find(({ kid }) => kid === header.kid);
  if (jwk === undefined) return "unknown_key";
  const alg = { EC: "ES256", OKP: "EdDSA" }[jwk.kty];
  if (alg === undefined || header.alg !== alg || (jwk.alg ?? alg) !== alg || (jwk.use ?? "sig") !== "sig") return "alg";
  const key = createPublicKey({ key: { ...jwk }, format: "jwk" });
  const bytes = Buffer.from(signature, "base64url");
  const input = Buffer.from(`${head}.${payload}`);
  if (!verify(alg === "ES256" ? "sha256" : null, input, { key, dsaEncoding: "ieee-p1363" }, bytes)) return "signature";
  const claims = decode(payload);
  const { iss, aud, exp, iat, sct, nbf, sid } = claims;
  for (const name of ["sub", "jti", "sid", "client_id"])
    if (!claims[name] || typeof claims[name] !== "string") return name;
  if (typeof exp !== "number" || typeof iat !== "number" || exp < iat || Date.now() >= exp * 1000) return "exp";
  if (iss !== issuer || ![aud].flat().includes(audience)) return "iss or aud";
  if ("cnf" in claims || (nbf !== undefined && !(Number(nbf) * 1000 <= Date.now()))) return "cnf or nbf";
  if (feed.hasEnded(sid, typeof sct === "number" ? sct : iat * 1000)) return "revoked";
  return feed.isComplete ? "accepted" : "unavailable";
}
