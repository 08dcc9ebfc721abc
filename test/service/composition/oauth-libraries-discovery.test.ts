/** openid-client finds the metadata, also under an issuer with a path, and introspects by an id and a secret. */
import * as client from "openid-client";
import { expect, test } from "vitest";
import { aService } from "../../support/every-protocol.ts";
import { logIn } from "../../support/sessions.ts";

const TOKEN = "an-admin-token+with/signs.that-are_encoded~12345==";

/** A host whose proxy passes `/tenant` on without it, as well as the well-known paths, and the admin API under another name. */
const ISSUER = "https://auth.example/tenant";
const service = aService({
  ...{ ISSUER, SIGNALS: "on", SIGNALS_URL: "https://in.example", ADMIN_TOKENS: TOKEN, SIGNING_ALGORITHM: "RS256" },
});

const proxied: client.CustomFetch = (target, options) => {
  const { host, pathname } = new URL(target);
  const path = pathname.replace(/^\/tenant(?=\/v1\/)/, "");
  return fetch((host === "in.example" ? service.adminUrl : service.publicUrl) + path, options as RequestInit);
};

const discover = (algorithm: "oauth2" | "oidc", authentication: client.ClientAuth, id = "ADMIN_TOKENS[0]") =>
  client.discovery(new URL(ISSUER), id, undefined, authentication, { algorithm, [client.customFetch]: proxied });

test.each(["oauth2", "oidc"] as const)("the metadata of an issuer with a path, by %s", async (algorithm) => {
  const config = await discover(algorithm, client.None());
  const metadata = config.serverMetadata();
  expect(metadata.issuer).toBe(ISSUER);
  expect(metadata.id_token_signing_alg_values_supported).toEqual(["RS256"]);
});

test.each([
  ["client_secret_basic", client.ClientSecretBasic(TOKEN)],
  ["client_secret_post", client.ClientSecretPost(TOKEN)],
])("an introspection by %s", async (_, authentication) => {
  const { accessToken, refreshToken, sid } = await logIn(service);
  const config = await discover("oidc", authentication);
  for (const token of [accessToken, refreshToken]) {
    expect(await client.tokenIntrospection(config, token)).toMatchObject({ active: true, sid });
  }
  expect(await client.tokenIntrospection(config, "nothing")).toEqual({ active: false });
});

test.each([
  ["client_secret_basic", client.ClientSecretBasic("wrong")],
  ["client_secret_post", client.ClientSecretPost("wrong")],
])("a wrong secret by %s", async (_, authentication) => {
  const config = await discover("oidc", authentication);
  const refused = await client.tokenIntrospection(config, "x").catch((error: unknown) => error);
  // A challenge of Basic comes with 401, whichever way the credential was sent.
  expect(refused).toMatchObject({ status: 401 });
});

test("a refresh, which says when the refresh token expires", async () => {
  const { refreshToken } = await logIn(service, { clientId: "cli" });
  const config = await discover("oauth2", client.None(), "cli");
  const tokens = await client.refreshTokenGrant(config, refreshToken);
  expect(tokens.refresh_token_expires_in).toBeGreaterThan(0);
});
