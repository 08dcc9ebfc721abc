/**
 * Lists settings that are valid separately and fail together, or are probably not intended. The start logs the findings, and `doctor` and
 * `config check` print them. A finding names the variable and never contains a secret.
 */
import { isIP } from "node:net";
import { browserFindings } from "./browser-findings.ts";
import { type Config, ConfigError, configVariables, readConfig } from "./config.ts";
import { type ConfigFinding, findingsAbout } from "./finding.ts";
import { isLoopback } from "./loopback.ts";
import type { Environment } from "./reader.ts";
import { misspeltVariables } from "./spelling.ts";

/** Reads the configuration. Findings are returned also beside faults, because a misspelt name may be the cause of a fault. */
export function examineConfig(env: Environment) {
  const setCount = [...configVariables().keys()].filter((name) => env[name]).length;
  try {
    const config = readConfig(env);
    return { config, faults: [], findings: configFindings(env, config), setCount };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return { config: undefined, faults: error.faults, findings: configFindings(env), setCount };
  }
}

/** @param config undefined if the configuration has faults: then only the names of variables are examined */
export function configFindings(env: Environment, config?: Config): readonly ConfigFinding[] {
  const misspelt = misspeltVariables(env).map((found) =>
    warning(found, "correct it, or remove it from the environment"),
  );
  if (config === undefined) return misspelt;
  return [
    ...misspelt,
    ...shortDeviceLife(config),
    ...withoutEffect(env, config),
    ...addressesBeyondAll(config),
    ...telemetryUnsupported(env, config),
    ...migrationOver(config),
    ...migrationFindings(config),
    ...strictCookie(config),
    ...browserFindings(config),
  ];
}

export const lineOf = ({ found, remedy }: ConfigFinding): string => `${found} (${remedy})`;

const { warning } = findingsAbout("configuration");

/** In ms. Measurements show that Chromium renews a device cookie before each request if its lifetime is shorter. */
const MIN_DEVICE_COOKIE_MS = 100_000;

function shortDeviceLife({ deviceBinding, deviceSessionTtlMs }: Config): readonly ConfigFinding[] {
  if (!deviceBinding || deviceSessionTtlMs > MIN_DEVICE_COOKIE_MS) return [];
  const found = "DEVICE_SESSION_TTL is 100s or less: browsers renew the device cookie with every refresh";
  return [warning(found, "set it to more than 100s")];
}

function addressesBeyondAll({ maxConnections, maxConnectionsPerAddress = 0 }: Config): readonly ConfigFinding[] {
  if (maxConnectionsPerAddress <= maxConnections) return [];
  const found = "MAX_CONNECTIONS_PER_ADDRESS has no effect above MAX_CONNECTIONS";
  return [warning(found, "set it to less, or raise MAX_CONNECTIONS")];
}

/** Variables of OpenTelemetry with a value that other programs understand. Environments that many programs share may set them. */
function telemetryUnsupported(env: Environment, { telemetry }: Config): readonly ConfigFinding[] {
  if (telemetry === undefined) return [];
  const { OTEL_PROPAGATORS: propagators = "", OTEL_LOGS_EXPORTER: logs } = env;
  const others = propagators.split(",").filter((name) => !/^\s*(?:tracecontext|baggage)?\s*$/.test(name));
  const protocols = (["TRACES", "METRICS"] as const)
    .map((signal) => `OTEL_EXPORTER_OTLP_${signal}_PROTOCOL`)
    .filter((name) => env[name] && env[name] !== telemetry.protocol);
  return [
    ...(others.length > 0 || (propagators !== "" && !propagators.includes("tracecontext"))
      ? [warning("OTEL_PROPAGATORS has no effect: traces go on by traceparent alone", "set it to tracecontext")]
      : []),
    ...protocols.map((name) =>
      warning(`${name} has no effect`, `set OTEL_EXPORTER_OTLP_PROTOCOL, for all signals, or remove ${name}`),
    ),
    ...(logs && logs !== "none"
      ? [warning("OTEL_LOGS_EXPORTER has no effect: the log goes to standard error", "set it to none")]
      : []),
  ];
}

/** What a finding needs to know of a key in the key ring. */
export type RingKeyFacts = { readonly alg: string; readonly state: string };

/** Finds a SIGNING_ALGORITHM that no key of the ring has, neither the one that signs nor one that is to follow. Only new rings take it. */
export function ringFindings(
  { signingAlgorithm: alg }: Config,
  keys: readonly RingKeyFacts[],
): readonly ConfigFinding[] {
  const isUsed = (key: RingKeyFacts) => key.alg === alg && (key.state === "signing" || key.state === "published");
  if (alg === undefined || keys.some(isUsed)) return [];
  const found = `SIGNING_ALGORITHM=${alg} has no effect on the key ring that exists`;
  return [warning(found, `session-service keys rotate signing --alg ${alg}`)];
}

function migrationOver({ cookie }: Config): readonly ConfigFinding[] {
  if (cookie.migrateUntilMs === undefined || cookie.migrateUntilMs > Date.now()) return [];
  const found = "COOKIE_MIGRATE_UNTIL is over: the name without its prefix is not read";
  return [warning(found, "remove it, or set a later day")];
}

/** A provider leads the browser back from another site, and browsers then send no cookie with SameSite=Strict. */
function strictCookie({ signInProvider, signInProvidersFile, cookie }: Config): readonly ConfigFinding[] {
  const signsIn = signInProvider !== undefined || signInProvidersFile !== undefined;
  if (!signsIn || cookie.sameSite !== "Strict") return [];
  const found = "COOKIE_SAMESITE=Strict: a sign-in at a provider neither replaces nor elevates the browser's session";
  return [warning(found, "set COOKIE_SAMESITE=Lax")];
}

/** Finds a way to the application on which others may read the old cookies. */
function migrationFindings({ migrateCookies, migrateUrl }: Config): readonly ConfigFinding[] {
  if (migrateCookies.length === 0 || migrateUrl === undefined) return [];
  const { protocol, hostname } = new URL(migrateUrl);
  if (protocol === "https:" || isLoopback(hostname) || !isPublicName(hostname)) return [];
  const found = "MIGRATE_URL: old cookies, which are credentials, go to another network in clear text";
  return [warning(found, "use https, or an address of the internal network")];
}

/** Names without a dot, and those of domains that no public resolver knows, are of the internal network, and so are private addresses. */
function isPublicName(host: string): boolean {
  if (isIP(host.replace(/^\[|\]$/g, "")) !== 0)
    return !/^(10\.|192\.168\.|172\.(1[6-9]|2\d|3[01])\.|\[f[cd])/.test(host);
  return host.includes(".") && !/\.(svc|local|internal|localhost|home\.arpa)$/.test(host);
}

/** A variable, the setting that it needs in order to have an effect, and whether the configuration has that setting. */
type Need = readonly [
  variables: readonly string[],
  needed: string,
  isMet: (config: Config, env: Environment) => boolean,
];

const NEEDS: readonly Need[] = [
  [
    [
      ...["SIGNALS_URL", "SIGNALS_RETENTION", "SIGNALS_ALLOW_PRIVATE"],
      ...["SIGNALS_VERIFICATION_INTERVAL", "SIGNALS_RSA_KEY_FILE"],
    ],
    "SIGNALS=on",
    ({ signals }) => signals,
  ],
  [["DEVICE_SESSION_TTL"], "DEVICE_BINDING=on", ({ deviceBinding }) => deviceBinding],
  [["REDIS_COMMAND_TIMEOUT"], "REDIS_URL", ({ redis }) => redis !== undefined],
  [["MIGRATE_URL"], "MIGRATE_COOKIES", ({ migrateCookies }) => migrateCookies.length > 0],
  [["MIGRATE_COOKIES"], "MIGRATE_URL", ({ migrateUrl }) => migrateUrl !== undefined],
  [["DPOP_NONCES"], "OAUTH_ENDPOINTS=on", ({ oauthEndpoints }) => oauthEndpoints],
  [
    ["OTEL_EXPORTER_OTLP_HEADERS_FILE"],
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    ({ telemetry }, env) => telemetry !== undefined || isTelemetryOff(env),
  ],
  [
    ["TRACE_LIMIT"],
    "OTEL_TRACES_EXPORTER=otlp",
    ({ telemetry }, env) => telemetry?.traces === true || isTelemetryOff(env),
  ],
  [
    ["OTEL_METRIC_EXPORT_INTERVAL", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"],
    "OTEL_METRICS_EXPORTER=otlp",
    ({ telemetry }, env) => telemetry?.metrics === true || isTelemetryOff(env),
  ],
  [
    ["OTEL_TRACES_SAMPLER_ARG"],
    "OTEL_TRACES_SAMPLER=parentbased_traceidratio",
    ({ telemetry }) => telemetry === undefined || telemetry.sampler.endsWith("traceidratio"),
  ],
];

/** A variable that switches a feature off explicitly is set in many environments that share it with others. It is no finding. */
const isOff = (text: string) => text.toLowerCase() === "off";

const isTelemetryOff = (env: Environment) => env.OTEL_SDK_DISABLED === "true";

function withoutEffect(env: Environment, config: Config): readonly ConfigFinding[] {
  return NEEDS.filter(([, , isMet]) => !isMet(config, env)).flatMap(([variables, needed]) =>
    variables
      .filter((name) => env[name] && !isOff(env[name]))
      .map((name) => warning(`${name} has no effect without ${needed}`, `set ${needed}, or remove ${name}`)),
  );
}
