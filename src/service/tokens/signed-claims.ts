import type { SigningKeys } from "./access-token.ts";

/**
 * Returns a function that signs claims with the current key (RFC 7515 section 7.1). A token of another type is never accepted as an
 * access token, because access tokens are recognised by their whole header.
 */
export function createClaimsSigner(keys: SigningKeys) {
  return (typ: string, claims: Readonly<Record<string, unknown>>): string => {
    const { signing } = keys.current;
    const own = JSON.parse(Buffer.from(signing.header, "base64url").toString()) as { readonly alg: string };
    const input = signingInput({ typ, alg: own.alg, kid: signing.kid }, claims);
    return `${input}.${signing.sign(input)}`;
  };
}

/** Returns the text that is signed for a set of claims (RFC 7515 section 5.1). */
export function signingInput(header: object, claims: object): string {
  return [header, claims].map(segment).join(".");
}

function segment(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}
