/** The options of every command that calls the admin API. */
import type { Command } from "commander";

export type ConnectionOptions = {
  readonly url?: string;
  readonly tokenFile?: string;
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
};

export const CONNECTION_HELP = `The token is read from --token-file or ADMIN_TOKEN; for a service on this machine also from ADMIN_TOKENS or
the file admin-token in DATA_DIR.`;

export function addConnectionOptions(command: Command): Command {
  return command
    .option("--url <url>", "the admin API (otherwise ADMIN_URL, or http://127.0.0.1:8081 by ADMIN_HOST and ADMIN_PORT)")
    .option("--token-file <path>", "a file with an admin token; - is standard input")
    .option("--ca <path>", "PEM of the authority that signed the service's certificate")
    .option("--cert <path>", "PEM of a client certificate, together with --key")
    .option("--key <path>", "PEM of its private key");
}
