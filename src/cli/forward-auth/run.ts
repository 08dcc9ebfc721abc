/** Runs `session-service forward-auth`, which gateways ask whether a request may pass, until the process receives a signal to stop. */
import { serveForwardAuth } from "../../sidecars/forward-auth/serve.ts";
import { createVerifier, VerifierClosedError } from "../../verifier/index.ts";
import { adminApiOf } from "../admin-api/client.ts";
import type { ConnectionOptions } from "../admin-api/options.ts";
import type { Context } from "../context.ts";
import { usageError } from "../exit.ts";
import { logOf, parsePort, serveUntilSignal } from "../serving.ts";

type ForwardAuthOptions = ConnectionOptions & {
  readonly issuer?: string;
  readonly audience?: readonly string[];
  readonly host: string;
  readonly port: string;
  readonly cookie?: string;
  readonly origin?: readonly string[];
  readonly deviceBound?: boolean;
  readonly refuse?: boolean;
};

/** How old the knowledge of ended sessions may be, in ms. This is the default of the verifier. */
const MAX_STALENESS_MS = 5_000;

export async function forwardAuth(context: Context, options: ForwardAuthOptions): Promise<void> {
  const adminApi = adminApiOf(context.env, options);
  const issuer = options.issuer ?? context.env.ISSUER;
  if (issuer === undefined) throw usageError("--issuer or ISSUER is needed");
  const log = logOf(context);
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
    // The gateway may start earlier. Until the verifier is ready, requests that it cannot decide get 503.
    verifier.ready.catch((error: unknown) => {
      // If this process stops before the service could be reached, that is not logged as a refusal.
      if (!(error instanceof VerifierClosedError)) log({ event: "refused_by_service", error });
    });
    const serving = serveForwardAuth(verifier, {
      host: options.host,
      port: parsePort(options.port),
      cookie: options.cookie,
      origins: options.origin?.map(parseOrigin),
      maxStalenessMs: MAX_STALENESS_MS,
      onBug: (error) => log({ event: "bug", error }),
    });
    await serveUntilSignal(context, log, serving);
  } finally {
    verifier.close();
  }
}

function parseOrigin(text: string): string {
  const url = URL.parse(text);
  const isOrigin = url !== null && /^https?:$/.test(url.protocol) && url.href === `${url.origin}/`;
  if (!isOrigin) throw usageError("--origin is a scheme, a host and maybe a port, such as https://app.example.com");
  return url.origin;
}
