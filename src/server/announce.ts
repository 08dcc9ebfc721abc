/** What the service writes to standard output once it is ready. */
import { join, relative, resolve } from "node:path";
import type { Config } from "../config/config.ts";
import { ADMIN_TOKEN_FILE } from "../tokens/own-admin-token.ts";
import { quickstart } from "./quickstart.ts";
import { hasOwnAdminToken } from "./secrets.ts";

type Ready = {
  readonly publicUrl: string;
  readonly adminUrl: string;
  readonly store: "embedded" | "redis";
  readonly docsKey: string | undefined;
};

/** One line of JSON; on the embedded store with its own admin token, the quickstart after it. */
export function reportReady(out: (text: string) => void, config: Config, ready: Ready): void {
  const { publicUrl, adminUrl, store, docsKey } = ready;
  out(`${JSON.stringify({ event: "ready", public: publicUrl, admin: adminUrl, store })}\n`);
  if (store !== "embedded" || !hasOwnAdminToken(config)) return;
  const tokenFile = shortest(join(config.dataDir, ADMIN_TOKEN_FILE));
  out(
    quickstart({
      publicUrl,
      adminUrl,
      tokenFile,
      cookieName: config.cookie.name,
      docsKey,
      console: config.console === "on",
    }),
  );
}

/** A path as somebody at this prompt would type it. */
function shortest(path: string): string {
  const near = relative(process.cwd(), path);
  return near.startsWith("..") ? resolve(path) : near;
}
