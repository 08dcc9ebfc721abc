/** A page on Vite's development server, which forwards calls to the service. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createViteServer } from "vitest/node";
import { aService } from "../../support/every-protocol.ts";
import { request } from "../../support/raw-http.ts";
import { cookie, logIn } from "../../support/sessions.ts";

const service = aService();
const page = readFileSync(join(import.meta.dirname, "../../../docs/tasks/browser.md"), "utf8");

type Proxy = string | { readonly target: string; readonly changeOrigin: boolean };

/**
 * Starts Vite's development server with this proxy setting, and sends it the refresh request that a page would send, with these headers of
 * Fetch Metadata. Returns the response.
 */
async function refreshThrough(proxy: Proxy, metadata: Record<string, string> = {}) {
  const root = mkdtempSync(join(tmpdir(), "vite-proxy-"));
  const vite = await createViteServer({
    root,
    configFile: false,
    logLevel: "silent",
    server: { host: "127.0.0.1", port: 0, watch: null, ws: false, proxy: { "/v1/auth": proxy } },
  });
  try {
    await vite.listen();
    const [url = ""] = vite.resolvedUrls?.local ?? [];
    const { origin } = new URL(url);
    const user = await logIn(service);
    const headers = { ...cookie(user.refreshToken), origin, ...metadata };
    return await request(origin, { method: "POST", path: "/v1/auth/refresh", headers });
  } finally {
    await vite.close();
    rmSync(root, { recursive: true });
  }
}

test("the line of docs/tasks/browser.md lets the page in, where the shorthand needs Fetch Metadata", async () => {
  const [, target = "", changeOrigin] = /\{ target: "(.*?)", changeOrigin: (\w+) \}/.exec(page) ?? [];
  expect(target).toBe("http://localhost:8080");
  const line = { target: service.publicUrl, changeOrigin: changeOrigin === "true" };
  // Browsers send no Fetch Metadata to http://192.168.1.20:5173, for example.
  expect((await refreshThrough(line)).status).toBe(200);
  expect((await refreshThrough(service.publicUrl)).status).toBe(403);
  expect((await refreshThrough(service.publicUrl, { "sec-fetch-site": "same-origin" })).status).toBe(200);
});
