/** A client of one OpenID Connect provider. openid-client implements the protocol. */
import { createPrivateKey } from "node:crypto";
import { readFile } from "node:fs/promises";
import * as oidc from "openid-client";
import { isSafeUrl, type ProviderClient, type ProviderCredential } from "../config/providers.ts";
import { boundedFetch, UnsafeUrl } from "./bounded-fetch.ts";
import { keepForAnHour } from "./keep-for-an-hour.ts";
import { createLogoutVerifier } from "./logout-token.ts";
import type { PendingLogin } from "./pending-logins.ts";
import type { ProviderClaims } from "./user.ts";

/**
 * `unavailable`: the provider does not respond, says that it cannot now, or the client's credential cannot be read. `denied`: it did not
 * authenticate the user. `used`: it does not accept the code, mostly because that was used already. `invalid`: everything else, such as a
 * response that cannot be trusted.
 */
export type ProviderFailure = {
  readonly ok: false;
  readonly reason: "unavailable" | "denied" | "used" | "invalid";
  /** A code of the protocol, for the log. */
  readonly code: string;
};

type Result<T> = ({ readonly ok: true } & T) | ProviderFailure;

/** What a login asks the provider for, beyond the identity of the user. */
export type Wishes = {
  readonly prompt?: string;
  readonly maxAgeSeconds?: number;
  readonly acrValues?: readonly string[];
};

type LogoutVerifier = ReturnType<typeof createLogoutVerifier>;

type Secrets = Pick<PendingLogin, "state" | "nonce" | "codeVerifier">;

const TIMEOUT_SECONDS = 5;

export function createProvider(settings: ProviderClient) {
  // The keys of ID tokens are kept with the metadata. So a clock that was set back delays neither the next keys nor the next metadata.
  const configuration = keepForAnHour(() => discover(settings));
  let logouts: { readonly keys: string; readonly verify: LogoutVerifier } | undefined;
  return {
    /** Returns the URL at which the user signs in, and the secrets with which the response is checked. */
    begin: (redirectUri: string, wishes: Wishes): Promise<Result<{ readonly url: URL; readonly secrets: Secrets }>> =>
      configuration()
        .then((config) => begin(config, settings, redirectUri, wishes))
        .catch(failureOf),

    /** Exchanges the code in the URL of a callback, without which it is the redirect URI, for the claims of the user. */
    finish: (callback: URL, login: PendingLogin): Promise<Result<{ readonly claims: ProviderClaims }>> =>
      configuration()
        .then((config) => finish(config, settings, callback, login))
        .catch((error: unknown) => {
          const failure = failureOf(error);
          // The provider has a key that its metadata did not have. The library would not look for it within a minute of its last reading.
          if (failure.code === UNKNOWN_KEY) configuration.renew();
          return failure;
        }),

    async verifyLogout(token: string): ReturnType<LogoutVerifier> {
      const found = await configuration().then(
        (config) => config.serverMetadata().jwks_uri,
        () => undefined,
      );
      if (found === undefined || !isSafeUrl(found)) return { ok: false, reason: "unavailable" };
      if (logouts?.keys !== found) {
        logouts = { keys: found, verify: createLogoutVerifier(settings.issuer, settings.clientId, found) };
      }
      return logouts.verify(token);
    },

    /** Returns the URL at which the user signs out of the provider; undefined if there is none, or the provider does not respond. */
    async signOutUrl(destination: string): Promise<URL | undefined> {
      try {
        const config = await configuration();
        if (config.serverMetadata().end_session_endpoint === undefined) return undefined;
        const url = oidc.buildEndSessionUrl(config, { post_logout_redirect_uri: destination });
        return isSafeUrl(url.href) ? url : undefined;
      } catch {
        return undefined;
      }
    },
  };
}

/** Reads the metadata of the provider. */
function discover({ issuer, clientId, credential }: ProviderClient): Promise<oidc.Configuration> {
  const insecure = issuer.startsWith("http:") ? [oidc.allowInsecureRequests] : [];
  const execute = [oidc.enableNonRepudiationChecks, ...insecure];
  const options = { execute, timeout: TIMEOUT_SECONDS, [oidc.customFetch]: boundedFetch };
  return oidc.discovery(new URL(issuer), clientId, {}, authenticationOf(credential), options);
}

async function begin(
  config: oidc.Configuration,
  { scopes }: ProviderClient,
  redirectUri: string,
  { prompt, maxAgeSeconds, acrValues }: Wishes,
) {
  const secrets = {
    state: oidc.randomState(),
    nonce: oidc.randomNonce(),
    codeVerifier: oidc.randomPKCECodeVerifier(),
  };
  const parameters = {
    redirect_uri: redirectUri,
    scope: scopes.join(" "),
    state: secrets.state,
    nonce: secrets.nonce,
    code_challenge: await oidc.calculatePKCECodeChallenge(secrets.codeVerifier),
    code_challenge_method: "S256",
    ...(prompt !== undefined && { prompt }),
    ...(maxAgeSeconds !== undefined && { max_age: String(maxAgeSeconds) }),
    ...(acrValues !== undefined && { acr_values: acrValues.join(" ") }),
  };
  const pushes = config.serverMetadata().pushed_authorization_request_endpoint !== undefined;
  const url = pushes
    ? await oidc.buildAuthorizationUrlWithPAR(config, parameters)
    : oidc.buildAuthorizationUrl(config, parameters);
  if (!isSafeUrl(url.href)) throw new UnsafeUrl();
  return { ok: true, url, secrets } as const;
}

async function finish(
  config: oidc.Configuration,
  { userinfo }: ProviderClient,
  callback: URL,
  { state, nonce, codeVerifier, maxAgeSeconds }: PendingLogin,
) {
  const tokens = await oidc.authorizationCodeGrant(config, callback, {
    expectedState: state,
    expectedNonce: nonce,
    pkceCodeVerifier: codeVerifier,
    idTokenExpected: true,
    ...(maxAgeSeconds !== undefined && { maxAge: maxAgeSeconds }),
  });
  const claims = tokens.claims();
  if (claims === undefined) return { ok: false, reason: "invalid", code: "no_id_token" } as const;
  if (!userinfo) return { ok: true, claims } as const;
  const more = await oidc.fetchUserInfo(config, tokens.access_token, claims.sub);
  const profile = Object.entries(more).filter(([name]) => !OF_AUTHENTICATION.includes(name));
  return { ok: true, claims: { ...Object.fromEntries(profile), ...claims } } as const;
}

/** What a provider says about the authentication counts from the ID token alone: the userinfo endpoint describes the user. */
const OF_AUTHENTICATION: readonly string[] = ["acr", "amr", "auth_time", "session_expiry", "sid"];

/** Returns how the service authenticates at the provider. Secrets are read at each use, so that they can be replaced at any time. */
function authenticationOf(credential: ProviderCredential): oidc.ClientAuth {
  if (credential.kind === "none") return oidc.None();
  return async (server, client, body, headers) => {
    if (credential.kind === "key_file") {
      const key = await readCredential(credential.path, createPrivateKey);
      const signing = key.toCryptoKey(KEY_PARAMETERS[credential.algorithm], false, ["sign"]);
      return oidc.PrivateKeyJwt(signing)(server, client, body, headers);
    }
    const secret = credential.kind === "secret" ? credential.secret : await readCredential(credential.path, secretIn);
    // The default of OpenID Connect Discovery section 3 is client_secret_basic.
    const methods = server.token_endpoint_auth_methods_supported ?? ["client_secret_basic"];
    const authenticate = methods.includes("client_secret_basic") ? oidc.ClientSecretBasic : oidc.ClientSecretPost;
    return authenticate(secret)(server, client, body, headers);
  };
}

/** The file of the client's secret or key cannot be used now, as for a moment while it is replaced. */
class CredentialFault extends Error {}

async function readCredential<T>(path: string, parse: (text: string) => T): Promise<T> {
  try {
    return parse(await readFile(path, "utf8"));
  } catch (cause) {
    throw new CredentialFault("the credential of the client cannot be read", { cause });
  }
}

/** @throws Error if the file is empty */
function secretIn(text: string): string {
  const secret = text.trim();
  if (secret === "") throw new Error("the file is empty");
  return secret;
}

const KEY_PARAMETERS = {
  ES256: { name: "ECDSA", namedCurve: "P-256" },
  RS256: { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" },
  PS256: { name: "RSA-PSS", hash: "SHA-256" },
  EdDSA: { name: "Ed25519" },
} as const;

/** The code of openid-client for an ID token whose key is not in the provider's key set. */
const UNKNOWN_KEY = "OAUTH_KEY_SELECTION_FAILED";

/** Errors with which a provider says that it cannot respond now (RFC 6749 section 4.1.2.1); some send them from other endpoints, too. */
const OUTAGES: readonly string[] = ["server_error", "temporarily_unavailable"];
/** Statuses that say nothing about the request: Request Timeout, Too Early, Too Many Requests. */
const OVERLOADED: readonly number[] = [408, 425, 429];
/** Codes of openid-client for a response without the form of OAuth, such as that of a proxy in front of the provider. */
const OF_OTHERS: readonly string[] = ["OAUTH_RESPONSE_IS_NOT_CONFORM", "OAUTH_RESPONSE_IS_NOT_JSON"];

const saysNothing = (status: number) => status >= 500 || OVERLOADED.includes(status);

function failureOf(error: unknown): ProviderFailure {
  if (error instanceof oidc.AuthorizationResponseError) {
    const code = shortCode(error.error);
    return { ok: false, reason: OUTAGES.includes(code) ? "unavailable" : "denied", code };
  }
  if (error instanceof oidc.ResponseBodyError) {
    if (saysNothing(error.status)) return { ok: false, reason: "unavailable", code: `status_${error.status}` };
    const code = shortCode(error.error);
    if (OUTAGES.includes(code)) return { ok: false, reason: "unavailable", code };
    return { ok: false, reason: code === "invalid_grant" ? "used" : "invalid", code };
  }
  if (error instanceof oidc.WWWAuthenticateChallengeError) {
    return { ok: false, reason: saysNothing(error.status) ? "unavailable" : "invalid", code: `status_${error.status}` };
  }
  if (error instanceof oidc.ClientError) {
    const { code = "client_error", cause } = error;
    if (cause instanceof CredentialFault) return { ok: false, reason: "unavailable", code: "client_credential_file" };
    if (cause instanceof UnsafeUrl) return { ok: false, reason: "invalid", code: cause.name };
    const isOutage = code === "OAUTH_TIMEOUT" || OF_OTHERS.includes(code);
    return { ok: false, reason: isOutage ? "unavailable" : "invalid", code };
  }
  // fetch rejects with a TypeError if there is no connection, and timeouts are DOMExceptions.
  if (error instanceof TypeError || error instanceof DOMException)
    return { ok: false, reason: "unavailable", code: "network" };
  return { ok: false, reason: "invalid", code: error instanceof Error ? error.name : "unknown" };
}

/** Returns a code that a provider or a browser has sent, without what a log should not contain. */
const shortCode = (code: string) => code.replace(/[^\w.-]/g, "_").slice(0, 64);
