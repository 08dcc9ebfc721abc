/**
 * Runs the example: the session service on its embedded store, and the application in front of it.
 *
 *     npm run example:web
 */
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer, type RequestListener } from "node:http";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { respond } from "./responses.ts";

const PORT = Number(process.env.PORT ?? 3000);
const DATA_DIR = process.env.DATA_DIR ?? join(import.meta.dirname, "data");
const ORIGIN = `http://localhost:${PORT}`;

function fail(message: string): never {
  console.error(message);
  process.exit(1);
}

// The port is opened before anything else is started, because a port in use is the most frequent fault and is thus reported at once.
let application: RequestListener | undefined;
const server = createServer((request, response) => {
  if (application) application(request, response);
  else respond(response, 503, { error: "starting" });
});
server.once("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EADDRINUSE") fail(`Cannot listen on port ${PORT}: ${error.message}`);
  fail(`Port ${PORT} is in use. Choose another one: PORT=${PORT + 1} npm run example:web`);
});
if (!(PORT > 0 && PORT < 65_536)) fail(`PORT must be a number from 1 to 65535, not "${process.env.PORT}".`);
await new Promise<void>((resolve) => server.listen(PORT, "localhost", resolve));

const service = spawn(process.execPath, [join(import.meta.dirname, "../../src/service/main.ts")], {
  env: {
    PATH: process.env.PATH,
    PORT: "0",
    ADMIN_PORT: "0",
    DATA_DIR,
    ISSUER: ORIGIN,
    // The application forwards requests, so it is the only proxy in front of the service.
    TRUST_PROXY: "1",
    SESSION_HINT_COOKIE: "signed_in",
    // Safari stores no Secure cookie for http://localhost. Remove this setting in production.
    COOKIE_SECURE: "false",
    DRAIN_DELAY: "0",
    LOG_LEVEL: "warn",
  },
  stdio: ["ignore", "pipe", "inherit"],
});
// If the session service ends, this process ends as well. If this process ends, it stops the service.
let stopping = false;
service.once("error", (error) => fail(`The session service cannot be started: ${error.message}`));
service.once("exit", (code, signal) => {
  if (stopping) process.exit(0);
  fail(`The session service has ended (${signal ?? `exit code ${code}`}).`);
});
process.once("exit", () => service.kill());
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => {
    stopping = true;
    service.kill("SIGINT");
  });
}

// The application is loaded while the service starts, and not before the port is open, so that a wrong or used port is reported at once.
const { createApplication } = await import("./application.ts");
// The first line that the service writes contains the URLs of its listeners.
createInterface({ input: service.stdout }).once("line", async (line) => {
  try {
    const ready = JSON.parse(line) as { public: string; admin: string };
    const adminToken = readFileSync(join(DATA_DIR, "admin-token"), "utf8").trim();
    application = await createApplication({
      origin: ORIGIN,
      publicUrl: ready.public,
      adminUrl: ready.admin,
      adminToken,
    });
    console.log(`Open ${ORIGIN} and sign in as alice@example.com with the password "correct horse".`);
  } catch (error) {
    fail(`The application cannot be started: ${error}`);
  }
});
