/** Loads SIGN_IN_PROVIDERS_FILE: the OpenID Connect providers whose users get sessions. */
import { isLoopback } from "./loopback.ts";
import {
  fault,
  flagOf,
  listOf,
  loadSettingsFile,
  membersOf,
  oneOfTexts,
  parseJson,
  required,
  requireUnique,
  type SettingsFile,
  textOf,
} from "./settings-file.ts";
import { plainUrl } from "./values.ts";

const ALGORITHMS = ["ES256", "RS256", "PS256", "EdDSA"] as const;

/** How the service authenticates at a provider. Files are read at each use, so their content may change at any time. */
export type ProviderCredential =
  | { readonly kind: "none" }
  | { readonly kind: "secret"; readonly secret: string }
  | { readonly kind: "secret_file"; readonly path: string }
  /** `private_key_jwt` (OpenID Connect Core section 9): the file has a private key in PEM (PKCS #8). */
  | { readonly kind: "key_file"; readonly path: string; readonly algorithm: (typeof ALGORITHMS)[number] };

/** What the service needs to speak with a provider. */
export type ProviderClient = {
  /** The name in URLs and logs. */
  readonly name: string;
  /** What users read where they choose a provider. */
  readonly title: string;
  readonly issuer: string;
  readonly clientId: string;
  readonly credential: ProviderCredential;
  readonly scopes: readonly string[];
  /** Whether claims are read from the userinfo endpoint as well. */
  readonly userinfo: boolean;
};

export type Requirements = Readonly<Record<string, readonly (string | boolean)[]>>;

export type Transmitter = {
  readonly issuer: string;
  /** For whom it makes events (`aud`). */
  readonly audience: string;
  /** The URL at which events are polled, and the file of its token, which is read at each use; undefined if events are pushed. */
  readonly poll?: { readonly url: string; readonly tokenFile: string } | undefined;
};

export type ProviderSettings = ProviderClient & {
  /** The text before `sub` in the subject of a session. Those of several providers differ. */
  readonly subjectPrefix: string;
  /** The paths of the provider's claims, by the names that they get in sessions. */
  readonly claims: Readonly<Record<string, string>>;
  /** The values of which a user must have one, by the paths of the provider's claims. */
  readonly require: Requirements;
  /** The transmitter of security events about users of the provider; undefined if there is none. */
  readonly securityEvents?: Transmitter | undefined;
};

export type ProvidersFile = SettingsFile<readonly ProviderSettings[]>;

/** @param reserved names of claims that a session may not have @throws SettingsFileFault if the file cannot be used */
export function loadProviders(path: string, reserved: readonly string[]): Promise<ProvidersFile> {
  return loadSettingsFile(path, (text) => parseProviders(text, reserved));
}

/** The provider of OIDC_ISSUER. */
export function oneProvider(given: Pick<ProviderSettings, "issuer" | "clientId" | "credential">): ProviderSettings {
  const { hostname: title } = new URL(given.issuer);
  return {
    name: "provider",
    title,
    scopes: ["openid"],
    userinfo: false,
    subjectPrefix: "",
    claims: {},
    require: {},
    ...given,
  };
}

/** Returns whether nobody between the service and the owner of a URL can change what they say (https, or this machine). */
export function isSafeUrl(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && (url.protocol === "https:" || (url.protocol === "http:" && isLoopback(url.hostname)));
}

const MAX_PROVIDERS = 20;
/** The members that `clientOf` reads. */
export const CLIENT_MEMBERS = [
  ...["name", "title", "issuer", "client_id", "client_secret_file", "private_key_file", "private_key_algorithm"],
  ...["scopes", "userinfo"],
];
const KNOWN = [...CLIENT_MEMBERS, "subject_prefix", "claims", "require", "security_events"];

/**
 * Reads `{"providers":[{"name":…,"issuer":…,"client_id":…}]}`.
 * @param reserved names that `claims` may not have @throws SettingsFileFault
 */
export function parseProviders(text: string, reserved: readonly string[] = []): readonly ProviderSettings[] {
  const { providers } = membersOf("the file", parseJson(text), ["providers"]);
  const isOnly = Array.isArray(providers) && providers.length === 1;
  const parsed = listOf("providers", providers, (at, value) => parseProvider(at, value, isOnly));
  if (parsed.length === 0) fault("providers", "is empty");
  if (parsed.length > MAX_PROVIDERS) fault("providers", `has more than ${MAX_PROVIDERS} entries`);
  for (const [member, name] of [
    ["name", "name"],
    ["subjectPrefix", "subject_prefix"],
  ] as const) {
    requireUnique(
      parsed.map((provider) => provider[member]),
      (index) => `providers[${index}].${name}`,
    );
  }
  for (const [index, { claims }] of parsed.entries()) {
    const taken = Object.keys(claims).find((name) => reserved.includes(name));
    if (taken !== undefined) fault(`providers[${index}].claims.${taken}`, "is set by the service");
  }
  return parsed;
}

function parseProvider(at: string, value: unknown, isOnly: boolean): ProviderSettings {
  const entry = membersOf(at, value, KNOWN);
  const client = clientOf(at, entry);
  const { subject_prefix: prefix = isOnly ? "" : `${client.name}:` } = entry;
  return {
    ...client,
    subjectPrefix: prefix === "" ? "" : required(`${at}.subject_prefix`, prefix),
    claims: mapOf(`${at}.claims`, entry.claims, required),
    require: requirementsOf(`${at}.require`, entry.require),
    securityEvents: transmitterOf(`${at}.security_events`, entry.security_events, client.issuer),
  };
}

/** @throws SettingsFileFault */
export function clientOf(at: string, entry: Readonly<Record<string, unknown>>): ProviderClient {
  const name = required(`${at}.name`, entry.name);
  if (!/^[a-z0-9-]{1,32}$/.test(name)) fault(`${at}.name`, "must be 1 to 32 of a-z, 0-9 and -");
  const issuer = safeUrl(`${at}.issuer`, entry.issuer);
  const scopes = listOf(`${at}.scopes`, entry.scopes, scopeOf);
  return {
    name,
    title: textOf(`${at}.title`, entry.title) ?? name,
    issuer,
    clientId: required(`${at}.client_id`, entry.client_id),
    credential: credentialOf(at, entry),
    scopes: scopes.includes("openid") ? scopes : ["openid", ...scopes],
    userinfo: flagOf(`${at}.userinfo`, entry.userinfo),
  };
}

/** Reads the values of which a user must have one, by the paths of claims. @throws SettingsFileFault */
export function requirementsOf(at: string, value: unknown): Requirements {
  return mapOf(at, value, valuesOf);
}

function transmitterOf(at: string, value: unknown, provider: string): Transmitter | undefined {
  if (value === undefined) return undefined;
  const known = ["issuer", "audience", "poll_url", "poll_token_file"];
  const { issuer = provider, audience, ...poll } = membersOf(at, value, known);
  return {
    issuer: safeUrl(`${at}.issuer`, issuer),
    audience: required(`${at}.audience`, audience),
    poll: pollOf(at, poll),
  };
}

function pollOf(at: string, entry: Readonly<Record<string, unknown>>): Transmitter["poll"] {
  if (entry.poll_url === undefined && entry.poll_token_file === undefined) return undefined;
  return {
    url: safeUrl(`${at}.poll_url`, entry.poll_url),
    tokenFile: required(`${at}.poll_token_file`, entry.poll_token_file),
  };
}

function safeUrl(at: string, value: unknown): string {
  const url = required(at, value);
  return plainUrl(url).ok && isSafeUrl(url) ? url : fault(at, "must be an https URL, or http on this machine");
}

function credentialOf(at: string, entry: Readonly<Record<string, unknown>>): ProviderCredential {
  const secretFile = textOf(`${at}.client_secret_file`, entry.client_secret_file);
  const keyFile = textOf(`${at}.private_key_file`, entry.private_key_file);
  const algorithm = oneOfTexts(`${at}.private_key_algorithm`, entry.private_key_algorithm, ALGORITHMS) ?? "ES256";
  if (secretFile !== undefined && keyFile !== undefined) fault(at, "has both client_secret_file and private_key_file");
  if (keyFile !== undefined) return { kind: "key_file", path: keyFile, algorithm };
  return secretFile === undefined ? { kind: "none" } : { kind: "secret_file", path: secretFile };
}

function scopeOf(at: string, value: unknown): string {
  const scope = required(at, value);
  return /^[\x21\x23-\x5b\x5d-\x7e]+$/.test(scope) ? scope : fault(at, "is not a scope");
}

function valuesOf(at: string, value: unknown): readonly (string | boolean)[] {
  if (typeof value === "boolean") return [value];
  return Array.isArray(value) ? listOf(at, value, required) : [required(at, value)];
}

const MAX_MEMBERS = 50;

function mapOf<T>(at: string, value: unknown, parse: (at: string, value: unknown) => T): Readonly<Record<string, T>> {
  if (value === undefined) return {};
  if (typeof value !== "object" || value === null || Array.isArray(value)) return fault(at, "must be an object");
  const members = Object.entries(value);
  if (members.length > MAX_MEMBERS) return fault(at, `has more than ${MAX_MEMBERS} members`);
  return Object.fromEntries(members.map(([name, each]) => [name, parse(`${at}.${name.slice(0, 40)}`, each)]));
}
