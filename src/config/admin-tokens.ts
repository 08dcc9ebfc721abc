/** The admin token that a service without ADMIN_TOKENS makes for itself, once, in its DATA_DIR. */
import { randomBytes } from "node:crypto";
import { linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ConfigError } from "./reader.ts";
import { adminToken, Fault } from "./values.ts";

export const ADMIN_TOKEN_FILE = "admin-token";

/** The token in `dataDir`, made when there is none: complete or not there at all, whoever starts at the same time. */
export function ownAdminToken(dataDir: string): string {
  const path = join(dataDir, ADMIN_TOKEN_FILE);
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const mine = `${path}.${process.pid}`;
  try {
    writeFileSync(mine, `${randomBytes(32).toString("base64url")}\n`, { mode: 0o600, flag: "wx", flush: true });
    linkSync(mine, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  } finally {
    rmSync(mine, { force: true });
  }
  const token = adminToken(readFileSync(path, "utf8").trim());
  if (token instanceof Fault) throw new ConfigError([`the file ${path} ${token.text}`]);
  return token;
}
