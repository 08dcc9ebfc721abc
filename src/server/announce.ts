/** What the service writes to standard output once it is ready. */
import { join, relative, resolve } from "node:path";
import type { Config } from "../config/config.ts";
import { ADMIN_TOKEN_FILE } from "../tokens/own-admin-token.ts";
import { quickstart } from "./quickstart.ts";
import { hasOwnAdminToken } from "./secrets.ts";

type Ready = { readonly publicUrl: string; readonly adminUrl: string; readonly store: "embedded" | "redis" };

/** One line of JSON; on the embedded store with its own admin token, the quickstart after it. */
export function reportReady(out: (text: string) => void, config: Config, ready: Ready): void {
  const { publicUrl, adminUrl, store } = ready;
  out(`${JSON.stringify({ event: "ready", public: publicUrl, admin: adminUrl, store })}\n`);
  if (store !== "embedded" || !hasOwnAdminToken(config)) return;
  out(quickstart(publicUrl, adminUrl, shortest(join(config.dataDir, ADMIN_TOKEN_FILE)), config.cookie.name));
}

/** A path as somebody at this prompt would type it. */
function shortest(path: string): string {
  const near = relative(process.cwd(), path);
  return near.startsWith("..") ? resolve(path) : near;
}
