import { compactVerify, importJWK } from "jose";
import { type PublishedKey, readJwk } from "../jwk.ts";
import { isPoint } from "./p256.ts";

/** A key that the WebCrypto of the runtime verifies with. */
export type Key = PublishedKey & { readonly verifies: (token: string) => Promise<boolean> };

/** Imports a JWK (RFC 7517); undefined if its use, type or curve is not that of a key for access tokens. */
export async function importKey(jwk: unknown): Promise<Key | undefined> {
  const read = readJwk(jwk);
  if (read === undefined) return undefined;
  const { kid, alg, members } = read;
  if (alg === "ES256" && !isPoint(members.x, members.y)) return undefined;
  const key = await importJWK(members as Parameters<typeof importJWK>[0], alg).catch(() => undefined);
  if (key === undefined) return undefined;
  const verifies = (token: string) =>
    compactVerify(token, key, { algorithms: [alg] }).then(
      () => true,
      () => false,
    );
  return { kid, alg, material: JSON.stringify(members), withdrawn: false, verifies };
}
