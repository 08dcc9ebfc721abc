/** An OpenID Connect provider for development: it signs in anybody, by any name and any password. It runs on this machine alone. */
import { createServer } from "node:http";
import { Provider } from "oidc-provider";

const { PORT = "3001", APP_ORIGIN = "http://127.0.0.1:8080" } = process.env;
const issuer = `http://127.0.0.1:${PORT}`;

const provider = new Provider(issuer, {
  clients: [
    {
      client_id: "app",
      client_secret: "a secret for development alone",
      redirect_uris: [`${APP_ORIGIN}/v1/auth/callback`],
      backchannel_logout_uri: `${APP_ORIGIN}/v1/auth/backchannel-logout`,
      backchannel_logout_session_required: true,
      post_logout_redirect_uris: [`${APP_ORIGIN}/docs`, `${APP_ORIGIN}/`],
    },
  ],
  claims: { openid: ["sub"], email: ["email"] },
  // Who signs out at the provider is signed out of the application.
  features: { backchannelLogout: { enabled: true } },
  // Without its agent, which calls no addresses of this machine.
  fetch: (url, options) => fetch(url, { ...options, dispatcher: undefined }),
  // The session gets these claims from the ID token.
  conformIdTokenClaims: false,
  findAccount: (_context, name) => ({ accountId: name, claims: () => ({ sub: name, email: `${name}@example.com` }) }),
  cookies: { keys: ["a key for development alone"] },
});
createServer(provider.callback()).listen(Number(PORT), "127.0.0.1", () => console.log(issuer));
