/** The settings of sign-in: users of OpenID Connect providers get sessions without an application in between. */
import { isSafeUrl, oneProvider, type ProviderCredential } from "./providers.ts";
import type { AddFault, Read } from "./reader.ts";
import { readSecret, readSecretFile } from "./secrets.ts";
import { invalid, type Parsed, plainUrl, readableFile, text, valid } from "./values.ts";

function issuer(value: string): Parsed<string> {
  const parsed = plainUrl(value);
  if (!parsed.ok || isSafeUrl(value)) return parsed;
  return invalid("is http on another machine: everybody in between could sign in as anybody");
}

function origin(value: string): Parsed<string> {
  const url = URL.parse(value);
  const isOrigin = url !== null && /^https?:$/.test(url.protocol) && url.origin === value;
  return isOrigin ? valid(value) : invalid("is not an origin such as https://app.example.com");
}

const style = (value: string): Parsed<string> =>
  value.includes("<") ? invalid("has a <, which a style sheet does not need") : valid(value);

const secret = (value: string): Parsed<ProviderCredential> => {
  const parsed = text(1024)(value);
  return parsed.ok ? valid({ kind: "secret", secret: parsed.value }) : parsed;
};

const secretFile = (path: string): Parsed<ProviderCredential> => {
  const parsed = readSecretFile(path, text(1024));
  return parsed.ok ? valid({ kind: "secret_file", path }) : parsed;
};

export function readSignIn(read: Read, addFault: AddFault) {
  const file = read("SIGN_IN_PROVIDERS_FILE", readableFile, undefined);
  const oidcIssuer = read("OIDC_ISSUER", issuer, undefined);
  const clientId = read("OIDC_CLIENT_ID", text(255), undefined);
  const credential = readSecret(read, addFault, "OIDC_CLIENT_SECRET", secret, secretFile) ?? { kind: "none" as const };
  if (file !== undefined && oidcIssuer !== undefined)
    addFault("OIDC_ISSUER and SIGN_IN_PROVIDERS_FILE exclude each other");
  if ((oidcIssuer === undefined) !== (clientId === undefined))
    addFault("OIDC_ISSUER and OIDC_CLIENT_ID must be set together");
  if (credential.kind !== "none" && clientId === undefined) addFault("OIDC_CLIENT_SECRET needs OIDC_CLIENT_ID");
  const one = oidcIssuer && clientId ? oneProvider({ issuer: oidcIssuer, clientId, credential }) : undefined;
  const signIn = {
    signInProvidersFile: file,
    /** The provider of OIDC_ISSUER. */
    signInProvider: one,
    /** The origin that browsers use. */
    signInOrigin: read("SIGN_IN_ORIGIN", origin, undefined),
    /** A style sheet for the pages of sign-in. */
    signInStyle: read("SIGN_IN_STYLE_FILE", (path) => readSecretFile(path, style), undefined),
  };
  if (file === undefined && one === undefined) {
    const set = { SIGN_IN_ORIGIN: signIn.signInOrigin, SIGN_IN_STYLE_FILE: signIn.signInStyle };
    for (const [name, value] of Object.entries(set)) {
      if (value !== undefined) addFault(`${name} needs OIDC_ISSUER or SIGN_IN_PROVIDERS_FILE`);
    }
  }
  return signIn;
}
