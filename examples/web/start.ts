/**
 * Runs the example: the session service on its embedded store, and the application in front of it.
 *
 *     npm run example:web
 */
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { startApplication } from "./application.ts";

const PORT = Number(process.env.PORT ?? 3000);
const DATA_DIR = process.env.DATA_DIR ?? join(import.meta.dirname, "data");
const ORIGIN = `http://localhost:${PORT}`;

const service = spawn(process.execPath, [join(import.meta.dirname, "../../src/main.ts")], {
  env: {
    PATH: process.env.PATH,
    PORT: "0",
    ADMIN_PORT: "0",
    DATA_DIR,
    ISSUER: ORIGIN,
    // The application passes requests on, so it is the one proxy in front of the service.
    TRUST_PROXY: "1",
    SESSION_HINT_COOKIE: "signed_in",
    // For http://localhost only: Safari keeps no Secure cookie there. Leave it out in production.
    COOKIE_SECURE: "false",
    DRAIN_DELAY: "0",
    LOG_LEVEL: "warn",
  },
  stdio: ["ignore", "pipe", "inherit"],
});
service.once("exit", (code) => process.exit(code ?? 1));
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => service.kill("SIGINT"));

// The first line that the service writes says where it listens.
const lines = createInterface({ input: service.stdout });
lines.once("line", async (line) => {
  const ready = JSON.parse(line) as { public: string; admin: string };
  const adminToken = readFileSync(join(DATA_DIR, "admin-token"), "utf8").trim();
  await startApplication({ port: PORT, origin: ORIGIN, publicUrl: ready.public, adminUrl: ready.admin, adminToken });
  console.log(`Open ${ORIGIN} and sign in as alice@example.com with the password "correct horse".`);
});
