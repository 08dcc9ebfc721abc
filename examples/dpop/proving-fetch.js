/**
 * A `fetch` that adds a DPoP proof (RFC 9449), for OAuth libraries that send none with a revocation:
 *
 *     const keys = await client.randomDPoPKeyPair("ES256"); // openid-client
 *     config[client.customFetch] = provingFetch(keys); // oauth4webapi: [oauth.customFetch] of each request
 *     await client.tokenRevocation(config, refreshToken);
 */
const base64url = (bytes) => Buffer.from(bytes).toString("base64url");
const segment = (value) => base64url(JSON.stringify(value));

/** Adds a proof of a P-256 key to requests without one. A request whose proof needs a nonce is repeated once. */
export function provingFetch({ publicKey, privateKey }, send = fetch) {
  let nonce;
  async function prove(url, method) {
    const { kty, crv, x, y } = await crypto.subtle.exportKey("jwk", publicKey);
    const { origin, pathname } = new URL(url);
    const iat = Math.floor(Date.now() / 1000);
    const claims = { htm: method, htu: origin + pathname, iat, jti: crypto.randomUUID(), nonce };
    const input = `${segment({ typ: "dpop+jwt", alg: "ES256", jwk: { kty, crv, x, y } })}.${segment(claims)}`;
    const algorithm = { name: "ECDSA", hash: "SHA-256" };
    return `${input}.${base64url(await crypto.subtle.sign(algorithm, privateKey, Buffer.from(input)))}`;
  }
  return async function attempt(url, init = {}, isRepeated = false) {
    const headers = new Headers(init.headers);
    if (headers.has("dpop")) return send(url, init);
    headers.set("dpop", await prove(url, init.method ?? "GET"));
    const response = await send(url, { ...init, headers });
    const given = response.headers.get("dpop-nonce");
    const isNew = given !== null && given !== nonce;
    if (isNew) nonce = given;
    return isNew && !response.ok && !isRepeated ? attempt(url, init, true) : response;
  };
}
