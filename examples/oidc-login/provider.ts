/** The login at an OpenID Connect provider: authorization code flow with PKCE, state and nonce. */
import * as oidc from "openid-client";

export type ProviderOptions = {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** The URL to which the provider sends the browser back. It must be registered at the provider. */
  readonly redirectUri: string;
};

/** The secrets of a login in progress, with which the callback is checked. Only the browser that began the login has them. */
export type PendingLogin = { readonly state: string; readonly nonce: string; readonly codeVerifier: string };

export type User = {
  readonly subject: string;
  /** When the user authenticated, if the provider reports it. */
  readonly authTimeMs: number | undefined;
  readonly amr: string[];
  readonly acr: string | undefined;
};

export async function connectProvider({ issuer, clientId, clientSecret, redirectUri }: ProviderOptions) {
  // Use an issuer with http only if the provider runs on this machine.
  const execute = issuer.startsWith("http:") ? [oidc.allowInsecureRequests] : [];
  const config = await oidc.discovery(new URL(issuer), clientId, clientSecret, undefined, { execute });
  return {
    async begin(): Promise<{ url: URL; pending: PendingLogin }> {
      const pending = {
        state: oidc.randomState(),
        nonce: oidc.randomNonce(),
        codeVerifier: oidc.randomPKCECodeVerifier(),
      };
      const url = oidc.buildAuthorizationUrl(config, {
        redirect_uri: redirectUri,
        scope: "openid",
        state: pending.state,
        nonce: pending.nonce,
        code_challenge: await oidc.calculatePKCECodeChallenge(pending.codeVerifier),
        code_challenge_method: "S256",
        // If `max_age` is requested, the ID token must contain `auth_time`.
        max_age: "86400",
      });
      return { url, pending };
    },

    /** @throws if the provider has refused the login, or if the response does not belong to the pending login */
    async finish(search: string, { state, nonce, codeVerifier }: PendingLogin): Promise<User> {
      const tokens = await oidc.authorizationCodeGrant(config, new URL(search, redirectUri), {
        expectedState: state,
        expectedNonce: nonce,
        pkceCodeVerifier: codeVerifier,
        idTokenExpected: true,
      });
      const claims = tokens.claims();
      if (claims === undefined) throw new Error("the provider sent no ID token");
      return {
        // If there are several providers, combine the issuer and the subject, because `sub` is unique only within an issuer.
        subject: claims.sub,
        authTimeMs: claims.auth_time === undefined ? undefined : claims.auth_time * 1000,
        amr: Array.isArray(claims.amr) ? claims.amr.map(String) : [],
        acr: typeof claims.acr === "string" ? claims.acr : undefined,
      };
    },
  };
}
