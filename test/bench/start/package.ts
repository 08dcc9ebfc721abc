/** The built package, on both stores. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";

const ADMIN_TOKEN = "bench-admin-token-bench-admin-token";

/** The headers of a call to the admin API, with a JSON body. */
export const ADMIN_HEADERS = { authorization: `Bearer ${ADMIN_TOKEN}`, "content-type": "application/json" };
export const CREATE_SESSION = "/auth.admin.v1.SessionAdminService/CreateSession";

/** A build with one of the stores. */
export type Contender = {
  readonly name: string;
  readonly command: string;
  readonly env: Readonly<Record<string, string>>;
};

/**
 * Returns a contender for each store with a build.
 * @param packages the `dist/packages` folder of the build
 * @param directory where keys and sessions are stored
 */
export function contendersOf(name: string, packages: string, redisUrl: string, directory: string): Contender[] {
  const command = join(packages, "service/bin/session-service.cjs");
  const keysFile = join(directory, `${name}-keys.json`);
  spawnSync(process.execPath, [command, "keys", "create", "--file", keysFile]);
  const env = {
    PATH: process.env.PATH ?? "",
    PORT: "0",
    ADMIN_PORT: "0",
    ADMIN_TOKENS: ADMIN_TOKEN,
    ISSUER: "http://127.0.0.1:8080",
    KEYS_FILE: keysFile,
    // A busy machine must not count as overload.
    OVERLOAD_MAX_LOOP_DELAY: "10s",
  };
  return [
    { name: `${name}, embedded`, command, env: { ...env, DATA_DIR: join(directory, `${name}-data`) } },
    // Each build has keys of its own, in both senses: sessions belong to a key ring.
    {
      name: `${name}, Redis`,
      command,
      env: { ...env, REDIS_URL: redisUrl, REDIS_KEY_PREFIX: `${name.replaceAll(" ", "-")}:` },
    },
  ];
}

/** Returns the `name=value` of a Set-Cookie header. */
export const pairOf = (header: string): string => header.split(";", 1)[0] ?? "";
