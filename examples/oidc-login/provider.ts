/** The login at an OpenID Connect provider: authorization code flow with PKCE, state and nonce. */
import * as oidc from "openid-client";

export type ProviderOptions = {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** Where the provider sends the browser back to; registered there. */
  readonly redirectUri: string;
};

/** What the callback must fit. It stays with the browser that began the login. */
export type PendingLogin = { readonly state: string; readonly nonce: string; readonly codeVerifier: string };

export type User = {
  readonly subject: string;
  /** When and how the user authenticated, as far as the provider says. */
  readonly authTimeMs: number | undefined;
  readonly amr: string[];
  readonly acr: string | undefined;
};

export async function connectProvider({ issuer, clientId, clientSecret, redirectUri }: ProviderOptions) {
  // For a provider on this machine alone.
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
        // With `max_age` the ID token says when the user authenticated.
        max_age: "86400",
      });
      return { url, pending };
    },

    /** @throws when the provider refused the login, or when the response does not fit the one that was begun */
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
        // With several providers: their issuer and the subject.
        subject: claims.sub,
        authTimeMs: claims.auth_time === undefined ? undefined : claims.auth_time * 1000,
        amr: Array.isArray(claims.amr) ? claims.amr.map(String) : [],
        acr: typeof claims.acr === "string" ? claims.acr : undefined,
      };
    },
  };
}
