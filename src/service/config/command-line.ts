/** The settings of the commands that call a service: the URL of its admin API, and a token. The service itself does not read them. */
import { type Environment, readSettings } from "./reader.ts";
import { readSecret } from "./secrets.ts";
import { adminToken, host, integer, list, type Parsed, plainUrl, text, valid } from "./values.ts";

export type CommandLineConfig = ReturnType<typeof readCommandLine>;

/**
 * The variables that only the commands read. If one of them is set for the service and resembles an unset variable of the service, a
 * warning says that it belongs to the commands.
 */
export const COMMAND_VARIABLES = ["ADMIN_URL", "ADMIN_TOKEN", "ADMIN_TOKEN_FILE", "TOKEN", "TOKEN_FILE"] as const;

/** @throws ConfigError */
export const readCommandLine = (env: Environment) =>
  readSettings(env, (read, addFault) => ({
    adminUrl: read("ADMIN_URL", baseUrl, undefined),
    adminToken: readSecret(read, addFault, "ADMIN_TOKEN", adminToken),
    /** The token to inspect or verify, for commands about a token. */
    token: readSecret(read, addFault, "TOKEN", text(16_384)),
    /** The service that is configured by this environment, if it runs on this machine. */
    local: {
      adminUrl: localUrl(
        read("ADMIN_HOST", host, "127.0.0.1"),
        read("ADMIN_PORT", integer(0, 65535), 8081),
        read("TLS_CERT_FILE", text(4096), undefined) !== undefined,
      ),
      adminTokens: read("ADMIN_TOKENS", list(adminToken), undefined),
      dataDir: read("DATA_DIR", text(4096), "./data"),
    },
  }));

/** Returns the URL of a listener on this machine; undefined if its port is not known. */
export function localUrl(name: string, port: number, tls: boolean): string | undefined {
  if (port === 0) return undefined;
  const near = name === "0.0.0.0" ? "127.0.0.1" : name === "::" ? "::1" : name;
  return `${tls ? "https" : "http"}://${near.includes(":") ? `[${near}]` : near}:${port}`;
}

/** Parses a URL, and removes slashes at its end. */
export function baseUrl(value: string): Parsed<string> {
  const url = plainUrl(value);
  return url.ok ? valid(url.value.replace(/\/+$/, "")) : url;
}
