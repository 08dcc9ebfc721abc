import type { Command } from "commander";
import { addConnectionOptions, CONNECTION_HELP } from "../admin-api/options.ts";
import type { Context } from "../context.ts";
import { CALL_EXIT_CODES } from "../exit.ts";

export function addForwardAuthCommand(program: Command, context: Context): void {
  const command = program
    .command("forward-auth")
    .description("tell gateways whether a request may pass: nginx, Caddy, Traefik, HAProxy, Envoy");
  addConnectionOptions(command)
    .option("--issuer <url>", "the issuer of the tokens (otherwise ISSUER)")
    .option("--audience <value...>", "the audience, or several (otherwise the issuer)")
    .option("--host <address>", "where to listen", "127.0.0.1")
    .option("--port <number>", "0: any that is free", "4181")
    .option("--cookie <name>", "a cookie with the access token, for requests without Authorization")
    .option("--origin <url...>", "where clients reach the gateway, for tokens that are bound to a key (DPoP)")
    .option("--device-bound", "accept only sessions that are bound to a device key")
    .option("--refuse", "503 while the feed is older than 5 s, instead of asking the service about each token")
    .addHelpText(
      "after",
      `\nA gateway sends the headers of a request to /check, or asks over gRPC (envoy.service.auth.v3), and gets
200 with X-Auth-Subject, X-Auth-Session, X-Auth-Client and X-Auth-Claims; 401 with WWW-Authenticate; or 503 if it
cannot be decided now. /readyz, /livez and /metrics are for those who run it.
The admin token needs the scopes watch and introspect. SIGTERM drains and ends it.

${CONNECTION_HELP}
${CALL_EXIT_CODES}`,
    )
    .action(async (options) => (await import("./run.ts")).forwardAuth(context, options));
}
