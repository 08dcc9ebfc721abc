/** Runs `session-service forward-auth`, which gateways ask whether a request may pass, until the process receives a signal to stop. */
import { once } from "node:events";
import type { Command } from "commander";
import { errorMessage } from "../../platform/files/error-code.ts";
import { isHttpUrl } from "../../platform/net/http-url.ts";
import type { TokenVerifier } from "../../server/user.ts";
import { duration, SECOND_MS } from "../config/values.ts";
import { addConnectionOptions, CONNECTION_HELP, type ConnectionOptions } from "./admin-api/options.ts";
import { CALL_EXIT_CODES, CommandError, type Context, usageError } from "./context.ts";

export function addForwardAuthCommand(program: Command, context: Context): void {
  const command = program
    .command("forward-auth")
    .description("tell gateways whether a request may pass: nginx, Caddy, Traefik, HAProxy, Envoy");
  addConnectionOptions(command)
    .option("--issuer <url>", "the issuer of the tokens (otherwise ISSUER)")
    .option("--audience <value...>", "the audience, or several (otherwise the issuer)")
    .option("--host <address>", "where to listen", "127.0.0.1")
    .option("--port <number>", "0: any that is free", "4181")
    .option(
      "--metrics-host <name...>",
      "a public name under which /metrics is scraped, besides addresses and private names",
    )
    .option("--cookie <name>", "a cookie with the access token, for requests without Authorization")
    .option("--refresh <url>", "the public API: cookies that expire are renewed there during the check")
    .option("--refresh-cookie <name>", "with --refresh: the cookie with the refresh token; default: refresh_token")
    .option("--reuse-interval <duration>", "with --refresh: the REUSE_INTERVAL of the service; default: 10s")
    .option("--sign-in <url>", "where pages lead that need a session, such as https://app.example.com/v1/auth/login")
    .option(
      "--origin <url...>",
      "where clients reach the gateway: for tokens that are bound to a key (DPoP), and --sign-in",
    )
    .option("--device-bound", "accept only sessions that are bound to a device key")
    .option("--refuse", "503 while the feed is older than 5 s, instead of asking the service about each token")
    .addHelpText(
      "after",
      `\nA gateway sends the headers of a request to /check, or asks over gRPC (envoy.service.auth.v3), and gets
200 with X-Auth-Subject, X-Auth-Session, X-Auth-Client and X-Auth-Claims; 401 with WWW-Authenticate; or 503 if it
cannot be decided now. nginx sends them to /auth-request. /readyz, /livez and /metrics are for those who run it.
The admin token needs the scopes watch and introspect. SIGTERM drains and ends it.

${CONNECTION_HELP}
${CALL_EXIT_CODES}`,
    )
    .action((options) => forwardAuth(context, options));
}

type ForwardAuthOptions = ConnectionOptions & {
  readonly issuer?: string;
  readonly audience?: readonly string[];
  readonly host: string;
  readonly port: string;
  readonly metricsHost?: readonly string[];
  readonly cookie?: string;
  readonly refresh?: string;
  readonly refreshCookie?: string;
  readonly reuseInterval?: string;
  readonly signIn?: string;
  readonly origin?: readonly string[];
  readonly deviceBound?: boolean;
  readonly refuse?: boolean;
};

/**
 * How old the last message of the revocation feed may be, in ms. If it is older, the feed alone no longer decides whether tokens are
 * accepted. The value is the default of the verifier.
 */
const MAX_STALENESS_MS = 5_000;

async function forwardAuth(context: Context, options: ForwardAuthOptions): Promise<void> {
  const { adminApiOf } = await import("./admin-api/client.ts");
  const { createVerifier, VerifierClosedError } = await import("../../verifier/index.ts");
  const { serveForwardAuth } = await import("../forward-auth/serve.ts");
  const adminApi = adminApiOf(context.env, options);
  const issuer = options.issuer ?? context.env.ISSUER;
  if (issuer === undefined) throw usageError("--issuer or ISSUER is needed");
  const log = logOf(context);
  const origins = options.origin?.map(parseOrigin) ?? [];
  const openBrowsers = await browsersOf(options, origins);
  const verifier = createVerifier({
    issuer,
    audience: options.audience ?? issuer,
    ...adminApi,
    requireDeviceBound: options.deviceBound === true,
    policy: options.refuse ? "refuse" : "introspect",
    maxStalenessMs: MAX_STALENESS_MS,
    report: log,
  });
  try {
    // The gateway may send requests before the verifier is ready. Until then, requests that the verifier cannot decide get 503.
    verifier.ready.catch((error: unknown) => {
      // If this process stops before the service could be reached, that is not logged as a refusal.
      if (!(error instanceof VerifierClosedError)) log({ event: "refused_by_service", error });
    });
    const serving = serveForwardAuth(verifier, {
      host: options.host,
      port: parsePort(options.port),
      metricsHosts: options.metricsHost,
      cookie: options.cookie,
      origins,
      browsers: openBrowsers?.(verifier),
      maxStalenessMs: MAX_STALENESS_MS,
      onBug: (error) => log({ event: "bug", error }),
    });
    const server = await serving.catch((error: unknown) => {
      throw new CommandError(errorMessage(error));
    });
    context.print(JSON.stringify({ event: "ready", url: server.url }));
    await Promise.race(["SIGTERM", "SIGHUP", "SIGINT"].map((signal) => once(process, signal)));
    log({ event: "draining" });
    await server.close();
  } finally {
    verifier.close();
  }
}

/** Returns the function that decides about requests of browsers; undefined without `--refresh`. Its modules are loaded only with it. */
async function browsersOf(options: ForwardAuthOptions, origins: readonly string[]) {
  const { refresh, signIn, refreshCookie, reuseInterval, cookie: accessCookie } = options;
  if (refresh === undefined) {
    if (signIn !== undefined)
      throw usageError("--sign-in needs --refresh: otherwise users sign in for each access token");
    if (refreshCookie !== undefined) throw usageError("--refresh-cookie needs --refresh");
    if (reuseInterval !== undefined) throw usageError("--reuse-interval needs --refresh");
    return undefined;
  }
  const service = parseUrl("--refresh", refresh).href;
  const page = signIn === undefined ? undefined : parseUrl("--sign-in", signIn).href;
  const given = {
    ...(accessCookie !== undefined && { accessCookie }),
    ...(refreshCookie !== undefined && { refreshCookie }),
    ...(reuseInterval !== undefined && { reuseIntervalMs: parseInterval(reuseInterval) }),
  };
  const { createServerSessions } = await import("../../server/sessions.ts");
  const { createBrowserCheck } = await import("../forward-auth/browsers.ts");
  const { createSignInRedirect } = await import("../forward-auth/sign-in.ts");
  return (verifier: TokenVerifier) =>
    createBrowserCheck({
      sessions: createServerSessions({ service, verifier, ...given }),
      signIn: page === undefined ? undefined : createSignInRedirect(page, origins),
    });
}

function parseInterval(text: string): number {
  const parsed = duration(0, 300 * SECOND_MS)(text);
  if (!parsed.ok) throw usageError("--reuse-interval is a duration of at most 300s, such as 10s");
  return parsed.value;
}

function parseUrl(option: string, text: string): URL {
  if (!isHttpUrl(text)) throw usageError(`${option} is an http:// or https:// URL without a password`);
  return new URL(text);
}

function parseOrigin(text: string): string {
  const url = URL.parse(text);
  const isOrigin = url !== null && /^https?:$/.test(url.protocol) && url.href === `${url.origin}/`;
  if (!isOrigin) throw usageError("--origin is a scheme, a host and maybe a port, such as https://app.example.com");
  return url.origin;
}

/** Returns a log that writes each event as a line of JSON to standard error. */
const logOf =
  ({ note }: Context) =>
  (line: object): void => {
    const error = "error" in line ? { error: errorMessage(line.error) } : {};
    note(JSON.stringify({ time: new Date().toISOString(), ...line, ...error }));
  };

function parsePort(text: string): number {
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65_535) return Number(text);
  throw usageError("--port is a number of at most 65535");
}
