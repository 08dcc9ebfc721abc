/** Runs the endpoint for gateways until a signal ends it. */
import { once } from "node:events";
import { type ForwardAuth, serveForwardAuth } from "../../forward-auth/serve.ts";
import { createVerifier, VerifierClosedError, type VerifierEvent } from "../../verifier/index.ts";
import { connectionOf } from "../admin-api/client.ts";
import type { ConnectionOptions } from "../admin-api/options.ts";
import type { Context } from "../context.ts";
import { CommandError, EXIT, usageError } from "../exit.ts";

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
  const { url, credential, nodeOptions } = connectionOf(context.env, options);
  const issuer = options.issuer ?? context.env.ISSUER;
  if (issuer === undefined) throw usageError("--issuer or ISSUER is needed");
  const log = (line: object) => context.note(JSON.stringify({ time: new Date().toISOString(), ...line }));
  const verifier = createVerifier({
    issuer,
    audience: options.audience ?? issuer,
    adminUrl: url,
    // Without a token, a client certificate authenticates the calls.
    ...(credential() === undefined ? {} : { adminToken: () => credential()?.token ?? "" }),
    nodeOptions,
    requireDeviceBound: options.deviceBound === true,
    policy: options.refuse ? "refuse" : "introspect",
    maxStalenessMs: MAX_STALENESS_MS,
    report: (event) => log(lineOf(event)),
  });
  try {
    // The gateway may start earlier. Until the verifier is ready, requests that it cannot decide get 503.
    verifier.ready.catch((error: unknown) => {
      // If this process stops before the service could be reached, that is not logged as a refusal.
      if (!(error instanceof VerifierClosedError)) log({ event: "refused_by_service", error: textOf(error) });
    });
    const server = await listen(verifier, options, log);
    context.print(JSON.stringify({ event: "ready", url: server.url }));
    await Promise.race([once(process, "SIGTERM"), once(process, "SIGINT")]);
    log({ event: "draining" });
    await server.close();
  } finally {
    verifier.close();
  }
}

function listen(
  verifier: Parameters<typeof serveForwardAuth>[0],
  { host, port, cookie, origin }: ForwardAuthOptions,
  log: (line: object) => void,
): Promise<ForwardAuth> {
  const number = Number(port);
  if (!/^\d{1,5}$/.test(port) || number > 65_535) throw usageError("--port is a number of at most 65535");
  const origins = origin?.map(parseOrigin);
  const onBug = (error: unknown) => log({ event: "bug", error: textOf(error) });
  return serveForwardAuth(verifier, {
    host,
    port: number,
    cookie,
    origins,
    maxStalenessMs: MAX_STALENESS_MS,
    onBug,
  }).catch((error: unknown) => {
    throw new CommandError(textOf(error), EXIT.failed);
  });
}

function parseOrigin(text: string): string {
  const url = URL.parse(text);
  const isOrigin = url !== null && /^https?:$/.test(url.protocol) && url.href === `${url.origin}/`;
  if (!isOrigin) throw usageError("--origin is a scheme, a host and maybe a port, such as https://app.example.com");
  return url.origin;
}

const textOf = (error: unknown) => (error instanceof Error ? error.message : String(error));

const lineOf = (event: VerifierEvent) => ("error" in event ? { ...event, error: textOf(event.error) } : event);
