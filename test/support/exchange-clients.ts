/** Clients that exchange access tokens: their credentials, their policies, and the service's environment with both. */
import { hash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { scratch } from "./service.ts";

export const EXCHANGE_GRANT = "urn:ietf:params:oauth:grant-type:token-exchange";
export const ACCESS_TOKEN_TYPE = "urn:ietf:params:oauth:token-type:access_token";
export const JWT_TYPE = "urn:ietf:params:oauth:token-type:jwt";

export const secretOf = (client: string) => `secret-of-${client}-`.padEnd(40, "x");

export const basicOf = (client: string, secret = secretOf(client)) => ({
  authorization: `Basic ${Buffer.from(`${client}:${secret}`).toString("base64")}`,
});

/**
 * Returns the environment of a service whose clients have these policies. @param others further names of credentials, and their scopes
 */
export function exchangeEnv(
  policies: readonly ({ readonly client_id: string } & Readonly<Record<string, unknown>>)[],
  others: Readonly<Record<string, string>> = {},
): Readonly<Record<string, string>> {
  const directory = scratch();
  const write = (name: string, value: object) => {
    const path = join(directory, name);
    writeFileSync(path, JSON.stringify(value), { mode: 0o600 });
    return path;
  };
  const scopes = { ...Object.fromEntries(policies.map(({ client_id }) => [client_id, "tokens:exchange"])), ...others };
  const admins = Object.entries(scopes).map(([name, scope]) => ({
    ...{ name, hash: hash("sha256", secretOf(name)), scopes: [scope] },
  }));
  return {
    ADMIN_TOKENS: "a".repeat(40),
    ADMIN_TOKENS_FILE: write("admins.json", { admins }),
    SESSION_POLICIES_FILE: write("policies.json", { token_exchange: policies }),
  };
}
