/** The unmodified libraries openid-client and oauth4webapi exchange tokens (RFC 8693), also with DPoP, and get errors that a client can handle. */
import * as oauth from "oauth4webapi";
import * as client from "openid-client";
import { expect, test } from "vitest";
import { aService } from "../../support/every-protocol.ts";
import { ACCESS_TOKEN_TYPE, EXCHANGE_GRANT, exchangeEnv, secretOf } from "../../support/exchange-clients.ts";
import { logIn } from "../../support/sessions.ts";

const GATEWAY = "https://gateway.example";
const ORDERS = "https://orders.example";
const POLICY = { client_id: "gateway", subject_token_audiences: [GATEWAY], audiences: [ORDERS], may_act: ["agent"] };
const service = aService({ ...exchangeEnv([POLICY]), DPOP_NONCES: "on" });
const user = (subject?: string) => logIn(service, { audience: GATEWAY, ...(subject && { subject }) });
const claims = (token: string) => JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString());
const discover = (authentication: client.ClientAuth) =>
  client.discovery(new URL(service.publicUrl), "gateway", undefined, authentication, {
    ...{ algorithm: "oauth2", execute: [client.allowInsecureRequests] },
  });
const parametersOf = (subject_token: string) => ({
  ...{ subject_token, subject_token_type: ACCESS_TOKEN_TYPE, resource: ORDERS },
});

test.each([
  ["client_secret_basic", client.ClientSecretBasic(secretOf("gateway"))],
  ["client_secret_post", client.ClientSecretPost(secretOf("gateway"))],
])("openid-client exchanges by %s, which the metadata lists", async (method, authentication) => {
  const config = await discover(authentication);
  const metadata = config.serverMetadata();
  expect(metadata.token_endpoint_auth_methods_supported).toContain(method);
  expect(metadata.grant_types_supported).toContain(EXCHANGE_GRANT);
  const { accessToken, sid } = await user();
  const agent = await user("agent");
  const granted = await client.genericGrantRequest(config, EXCHANGE_GRANT, {
    ...parametersOf(accessToken),
    ...{ actor_token: agent.accessToken, actor_token_type: ACCESS_TOKEN_TYPE },
  });
  expect(granted).toMatchObject({ token_type: "bearer", issued_token_type: ACCESS_TOKEN_TYPE });
  expect(granted.refresh_token).toBeUndefined();
  expect(granted.expiresIn()).toBeGreaterThan(0);
  expect(claims(granted.access_token)).toMatchObject({ sid, aud: ORDERS, act: { sub: "agent" } });
});

test("openid-client exchanges with DPoP, whose proofs need a nonce", async () => {
  const config = await discover(client.ClientSecretBasic(secretOf("gateway")));
  const DPoP = client.getDPoPHandle(config, await client.randomDPoPKeyPair("ES256"));
  const { accessToken } = await user();
  const granted = await client.genericGrantRequest(config, EXCHANGE_GRANT, parametersOf(accessToken), { DPoP });
  expect(granted.token_type).toBe("dpop");
  expect(claims(granted.access_token).cnf).toEqual({ jkt: await DPoP.calculateThumbprint() });
});

test("openid-client refreshes for a resource", async () => {
  const config = await client.discovery(new URL(service.publicUrl), "web", undefined, client.None(), {
    ...{ algorithm: "oauth2", execute: [client.allowInsecureRequests] },
  });
  const { refreshToken } = await logIn(service, { audiences: [GATEWAY, ORDERS], clientId: "web" });
  const granted = await client.refreshTokenGrant(config, refreshToken, { resource: ORDERS });
  expect(claims(granted.access_token).aud).toBe(ORDERS);
  const failure = client.refreshTokenGrant(config, granted.refresh_token ?? "", { resource: "https://other.example" });
  await expect(failure).rejects.toMatchObject({ status: 400, error: "invalid_target" });
});

test("oauth4webapi exchanges, and gets the errors of RFC 6749 section 5.2", async () => {
  const insecure = { [oauth.allowInsecureRequests]: true };
  const issuer = new URL(service.publicUrl);
  const found = await oauth.discoveryRequest(issuer, { algorithm: "oauth2", ...insecure });
  const server = await oauth.processDiscoveryResponse(issuer, found);
  const gateway: oauth.Client = { client_id: "gateway" };
  const exchange = async (parameters: Record<string, string>, secret = secretOf("gateway")) => {
    const authentication = oauth.ClientSecretBasic(secret);
    const response = await oauth.genericTokenEndpointRequest(
      ...([server, gateway, authentication, EXCHANGE_GRANT, parameters, insecure] as const),
    );
    return oauth.processGenericTokenEndpointResponse(server, gateway, response);
  };
  const { accessToken, sid } = await user();
  const granted = await exchange(parametersOf(accessToken));
  expect(claims(granted.access_token)).toMatchObject({ sid, aud: ORDERS });
  await expect(exchange(parametersOf("x"))).rejects.toMatchObject({ status: 400, error: "invalid_request" });
  const elsewhere = { ...parametersOf(accessToken), resource: GATEWAY };
  await expect(exchange(elsewhere)).rejects.toMatchObject({ status: 400, error: "invalid_target" });
  const failure = await exchange(parametersOf(accessToken), "wrong").catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(oauth.WWWAuthenticateChallengeError);
  expect(failure).toMatchObject({ cause: [{ scheme: "basic" }], status: 401 });
});
