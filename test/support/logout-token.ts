/** An identity provider that only sends logout tokens, and the request that brings one. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { exportJWK, generateKeyPair, type JWTHeaderParameters, SignJWT } from "jose";

export const LOGOUT_EVENTS = { "http://schemas.openid.net/event/backchannel-logout": {} };

export type Issuer = Awaited<ReturnType<typeof startIssuer>>;

export async function startIssuer() {
  const makeKey = async (kid: string) => {
    const { publicKey, privateKey } = await generateKeyPair("ES256");
    return { kid, privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg: "ES256" } };
  };
  let current = await makeKey("one");
  let keys: unknown = [current.jwk];
  let isDown = false;
  let requests = 0;
  let host = "127.0.0.1";
  const server = createServer(({ url }, response) => {
    if (isDown) return void response.writeHead(500).end();
    requests++;
    const metadata = {
      issuer,
      jwks_uri: issuer.replace("127.0.0.1", host).concat("/jwks"),
      authorization_endpoint: `${issuer}/auth`,
      token_endpoint: `${issuer}/token`,
      response_types_supported: ["code"],
      subject_types_supported: ["public"],
      id_token_signing_alg_values_supported: ["ES256"],
    };
    response.setHeader("content-type", "application/json").end(JSON.stringify(url === "/jwks" ? { keys } : metadata));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  let count = 0;
  return {
    issuer,
    env: { OIDC_ISSUER: issuer, OIDC_CLIENT_ID: "app", OIDC_CLIENT_SECRET: "a secret of the client, which is long" },
    /** Returns how often metadata and keys have been read. */
    requests: () => requests,
    setDown(down: boolean) {
      isDown = down;
    },
    /** Signs with another key from now on, which the key set has in place of the one before. */
    async rotate(kid: string) {
      current = await makeKey(kid);
      keys = [current.jwk];
    },
    /** Names another host of the key set, at which it is served as well. */
    keysAt(name: string) {
      host = name;
    },
    /** Makes the key set one that cannot be used. */
    breakKeys() {
      keys = "none";
    },
    /** Makes a logout token, or one with other claims in place of the usual ones. An undefined one is left out. */
    sign(
      claims: Readonly<Record<string, unknown>>,
      header: Partial<JWTHeaderParameters> = {},
      key = current.privateKey,
    ): Promise<string> {
      const iat = Math.floor(Date.now() / 1000);
      const usual = { iss: issuer, aud: "app", iat, exp: iat + 120, jti: `token ${++count}`, events: LOGOUT_EVENTS };
      const all = Object.entries({ ...usual, ...claims }).filter(([, value]) => value !== undefined);
      return new SignJWT(Object.fromEntries(all))
        .setProtectedHeader({ alg: "ES256", typ: "logout+jwt", kid: current.kid, ...header })
        .sign(key);
    },
    stop: () => void server.close(),
  };
}

export function sendLogout({ publicUrl }: { readonly publicUrl: string }, token: string): Promise<Response> {
  const body = new URLSearchParams({ logout_token: token });
  return fetch(`${publicUrl}/v1/auth/backchannel-logout`, { method: "POST", body });
}
