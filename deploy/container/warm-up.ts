/**
 * Lets a service that was put together for an image serve once on each store, so that the image has its compiled code: a container can
 * usually not write into its image. `node warm-up.ts <directory>`, with the NODE_OPTIONS of the image, because code is for the same flags.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

const ADMIN_TOKEN = "warm-up-admin-token-warm-up-admin-token";

const [directory = ""] = process.argv.slice(2);
const data = mkdtempSync(join(tmpdir(), "warm-up-"));

type Urls = { readonly public: string; readonly admin: string };

async function call(url: string, headers: Readonly<Record<string, string>>, body?: object): Promise<Response> {
  const response = await fetch(url, { method: "POST", headers, ...(body && { body: JSON.stringify(body) }) });
  if (!response.ok) throw new Error(`${url} responds ${response.status}: ${await response.text()}`);
  return response;
}

/** Creates a session, refreshes and ends it: V8 compiles a function when it is called first. */
async function serveSession(urls: Urls): Promise<void> {
  const headers = { authorization: `Bearer ${ADMIN_TOKEN}`, "content-type": "application/json" };
  const created = await call(`${urls.admin}/auth.admin.v1.SessionAdminService/CreateSession`, headers, {
    subject: "any",
  });
  const { setCookie } = (await created.json()) as { setCookie: string };
  const cookieOf = (header: string) => ({ cookie: header.split(";", 1)[0] ?? "" });
  const refreshed = await call(`${urls.public}/v1/auth/refresh`, cookieOf(setCookie));
  await call(`${urls.public}/v1/auth/logout`, cookieOf(refreshed.headers.get("set-cookie") ?? ""));
}

/** @param use is called with the first line that the service prints to that output */
async function run(
  env: Readonly<Record<string, string>>,
  output: "stdout" | "stderr",
  use: (line: string) => Promise<void>,
): Promise<void> {
  const settings = { PORT: "0", ADMIN_PORT: "0", ADMIN_TOKENS: ADMIN_TOKEN, LOG_LEVEL: "warn", DRAIN_DELAY: "0" };
  // Node's own cache of code is for the user that runs this.
  const { NODE_OPTIONS = "" } = process.env;
  const options = { NODE_OPTIONS, NODE_DISABLE_COMPILE_CACHE: "1", DATA_DIR: data, ISSUER: "http://127.0.0.1:8080" };
  const service = spawn(process.execPath, [join(directory, "bin/session-service.cjs")], {
    env: { ...settings, ...options, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const ended = once(service, "exit");
  const other = output === "stdout" ? service.stderr : service.stdout;
  other.resume();
  try {
    const [line] = await once(createInterface(service[output]), "line", { signal: AbortSignal.timeout(60_000) });
    await use(String(line));
  } finally {
    service.kill("SIGTERM");
    await ended;
  }
}

await run({}, "stdout", (line) => serveSession(JSON.parse(line) as Urls));
// Without Redis the service waits for it, and has loaded the store.
await run({ REDIS_URL: "redis://127.0.0.1:9" }, "stderr", async (line) => {
  if (!line.includes("ECONNREFUSED")) throw new Error(`the service waits for no Redis: ${line}`);
});
rmSync(data, { recursive: true });
