/**
 * The unmodified libraries openid-client and oauth4webapi refresh with DPoP: with nonces, without nonces, and with a wrong clock. They
 * revoke tokens with the `fetch` function of examples/dpop, which adds the DPoP proof.
 */
import * as oauth from "oauth4webapi";
import * as client from "openid-client";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Transport } from "../../../gen/auth/admin/v1/session_admin_pb.ts";
import { type Service, startService } from "../../support/service.ts";
import { admin, bearer, logIn, openAdmin } from "../../support/sessions.ts";

const claims = (token: string) => JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString());

type Keys = Awaited<ReturnType<typeof oauth.generateKeyPair>>;
type ProvingFetch = {
  readonly provingFetch: (keys: Keys) => client.CustomFetch;
};
const file = new URL("../../../examples/dpop/proving-fetch.js", import.meta.url);
const { provingFetch } = (await import(file.href)) as ProvingFetch;

describe.each(["off", "on"] as const)("with DPOP_NONCES=%s", (nonces) => {
  let service: Service;
  beforeAll(async () => {
    service = await startService({ DPOP_NONCES: nonces, REUSE_INTERVAL: "0" });
  });
  afterAll(() => service.stop());
  const signIn = () => logIn(service, { clientId: "cli", transport: Transport.TOKEN });

  const isLive = async (sessionId: string) =>
    (await openAdmin(service).call(admin.getSession, { sessionId }, bearer(service.adminToken))).ok;
  const insecure = { [oauth.allowInsecureRequests]: true };

  test("openid-client revokes by the fetch that proves, and not without", async () => {
    const keys = await client.randomDPoPKeyPair("ES256");
    const config = await client.discovery(new URL(service.publicUrl), "cli", undefined, client.None(), {
      algorithm: "oauth2",
      execute: [client.allowInsecureRequests],
    });
    const { refreshToken, sid } = await signIn();
    const DPoP = client.getDPoPHandle(config, keys);
    const { refresh_token = "" } = await client.refreshTokenGrant(config, refreshToken, undefined, { DPoP });
    const failure = await client.tokenRevocation(config, refresh_token).catch((error: unknown) => error);
    expect(failure).toMatchObject({ status: 400, error: "invalid_dpop_proof" });
    expect(await isLive(sid)).toBe(true);
    config[client.customFetch] = provingFetch(keys);
    await client.tokenRevocation(config, refresh_token);
    expect(await isLive(sid)).toBe(false);
  });

  test("oauth4webapi refreshes and revokes by the fetch that proves, and a thief's key ends nothing", async () => {
    const issuer = new URL(service.publicUrl);
    const found = await oauth.discoveryRequest(issuer, { algorithm: "oauth2", ...insecure });
    const server = await oauth.processDiscoveryResponse(issuer, found);
    const cli: oauth.Client = { client_id: "cli" };
    const options = async () => ({
      ...insecure,
      [oauth.customFetch]: provingFetch(await oauth.generateKeyPair("ES256")),
    });
    const [own, thief] = [await options(), await options()];
    const { refreshToken, sid } = await signIn();
    const response = await oauth.refreshTokenGrantRequest(server, cli, oauth.None(), refreshToken, own);
    const { refresh_token = "" } = await oauth.processRefreshTokenResponse(server, cli, response);
    const revoke = async (by: typeof own) =>
      oauth.processRevocationResponse(await oauth.revocationRequest(server, cli, oauth.None(), refresh_token, by));
    await expect(revoke(thief)).rejects.toMatchObject({ error: "invalid_dpop_proof" });
    expect(await isLive(sid)).toBe(true);
    await revoke(own);
    expect(await isLive(sid)).toBe(false);
  });

  test.each(["ES256", "RS256", "Ed25519"])("openid-client refreshes and logs out under %s", async (alg) => {
    const config = await client.discovery(new URL(service.publicUrl), "cli", undefined, client.None(), {
      algorithm: "oauth2",
      execute: [client.allowInsecureRequests],
    });
    const DPoP = client.getDPoPHandle(config, await client.randomDPoPKeyPair(alg));
    const { refreshToken } = await signIn();
    const first = await client.refreshTokenGrant(config, refreshToken, undefined, { DPoP });
    const second = await client.refreshTokenGrant(config, first.refresh_token ?? "", undefined, { DPoP });
    expect(second.token_type).toBe("dpop");
    expect(claims(second.access_token).cnf).toEqual({ jkt: await DPoP.calculateThumbprint() });
    // This refresh token was replaced by two later refreshes. With a proof of the key it is still accepted.
    await client.refreshTokenGrant(config, refreshToken, undefined, { DPoP });
    const failure = await client.refreshTokenGrant(config, second.refresh_token ?? "").catch((error: unknown) => error);
    expect(failure).toMatchObject({ status: 400, error: "invalid_dpop_proof" });
    // The library sends no DPoP proof with its revocation call. It does send a proof with requests to protected resources, so this function
    // logs the user out by such a request.
    const call = (method: string, path: string) =>
      client.fetchProtectedResource(
        config,
        second.access_token,
        new URL(service.publicUrl + path),
        method,
        undefined,
        undefined,
        { DPoP },
      );
    expect((await call("GET", "/v1/auth/sessions")).status).toBe(200);
    expect((await call("DELETE", "/v1/auth/logout")).status).toBe(200);
  });

  test.each([
    ["right", 0],
    ["an hour late", -3600],
    ["an hour early", 3600],
  ])("oauth4webapi refreshes with a clock that is %s", async (_, skew) => {
    const issuer = new URL(service.publicUrl);
    const found = await oauth.discoveryRequest(issuer, { algorithm: "oauth2", ...insecure });
    const server = await oauth.processDiscoveryResponse(issuer, found);
    const cli: oauth.Client = { client_id: "cli", [oauth.clockSkew]: skew };
    const DPoP = oauth.DPoP(cli, await oauth.generateKeyPair("ES256"));
    const { refreshToken, sid } = await signIn();
    const grant = async () => {
      const options = { DPoP, ...insecure };
      const response = await oauth.refreshTokenGrantRequest(server, cli, oauth.None(), refreshToken, options);
      return oauth.processRefreshTokenResponse(server, cli, response);
    };
    const granted = await grant().catch((error: unknown) => {
      if (!oauth.isDPoPNonceError(error)) throw error;
      return grant();
    });
    expect([granted.token_type, claims(granted.access_token).sid]).toEqual(["dpop", sid]);
  });
});
