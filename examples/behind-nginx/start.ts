/**
 * Runs an application that knows nothing of sessions, behind nginx: a provider for development, the session service, the check, the
 * application, and nginx with examples/forward-auth/nginx.conf. Variables of the service may be set: with `OIDC_ISSUER` and those beside
 * it, your provider takes the place of the one for development.
 *
 *     node examples/behind-nginx/start.ts
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";

const { PORT = "8000", NGINX = "nginx" } = process.env;
const { APPLICATION_PORT = "3000", PROVIDER_PORT = "3001", SERVICE_PORT = "8080", CHECK_PORT = "4181" } = process.env;
const ORIGIN = `http://localhost:${PORT}`;
const examples = join(import.meta.dirname, "..");
const directory = process.env.DATA_DIR ?? join(import.meta.dirname, "data");
const program = join(examples, "../src/service/main.ts");

const children: ChildProcess[] = [];
let stopping = false;

/** Starts a program. If it ends, everything ends. */
function run(name: string, command: string, args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const child = spawn(command, args, { env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "inherit"] });
  child.once("error", (error) => stop(`${name} cannot be started: ${error.message}`));
  child.once("exit", (code, signal) => stop(`${name} has ended (${signal ?? `exit code ${code}`})`));
  children.push(child);
  return createInterface({ input: child.stdout });
}

function stop(reason?: string): void {
  if (stopping) return;
  stopping = true;
  if (reason !== undefined) console.error(reason);
  process.exitCode = reason === undefined ? 0 : 1;
  for (const child of children) child.kill("SIGTERM");
}
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stop());

/** Resolves with the first line that a program writes. */
const firstLine = (lines: ReturnType<typeof run>) => new Promise<string>((resolve) => lines.once("line", resolve));

/** Returns nginx.conf with the addresses of this machine, on http, and what a nginx needs that is not a service of the system. */
function nginxConf(): string {
  const server = readFileSync(join(examples, "forward-auth/nginx.conf"), "utf8")
    .replace("listen 443 ssl", `listen 127.0.0.1:${PORT}`)
    .replace("app.example.com;", "localhost;")
    .replace(/^ *ssl_certificate.*\n/gm, "")
    .replace("127.0.0.1:4181", `127.0.0.1:${CHECK_PORT}`)
    .replace("127.0.0.1:8080", `127.0.0.1:${SERVICE_PORT}`)
    .replace("127.0.0.1:3000", `127.0.0.1:${APPLICATION_PORT}`);
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((name) => `${name}_temp_path ${name};`);
  return `daemon off; pid nginx.pid; events {}\nhttp { access_log off; ${temporary.join(" ")}\n${server}}\n`;
}

mkdirSync(join(directory, "nginx"), { recursive: true });
let provider: Readonly<Record<string, string>> = {};
if (process.env.OIDC_ISSUER === undefined) {
  const lines = run("the provider", process.execPath, [join(examples, "oidc-login/provider.ts")], {
    PORT: PROVIDER_PORT,
    APP_ORIGIN: ORIGIN,
  });
  const issuer = await firstLine(lines);
  provider = { OIDC_ISSUER: issuer, OIDC_CLIENT_ID: "app", OIDC_CLIENT_SECRET: "a secret for development alone" };
}

const service = run("the session service", process.execPath, [program], {
  PORT: SERVICE_PORT,
  ADMIN_PORT: "0",
  DATA_DIR: join(directory, "sessions"),
  ISSUER: ORIGIN,
  SIGN_IN_ORIGIN: ORIGIN,
  ACCESS_COOKIE: "access_token",
  COOKIE_PATH: "/",
  TRUST_PROXY: "127.0.0.1",
  // Safari stores no Secure cookie for http://localhost. Remove this setting in production.
  COOKIE_SECURE: "false",
  DRAIN_DELAY: "0",
  LOG_LEVEL: "warn",
  ...provider,
});
const { public: publicUrl, admin } = JSON.parse(await firstLine(service)) as { public: string; admin: string };

const check = [
  "forward-auth",
  "--url",
  admin,
  "--token-file",
  join(directory, "sessions/admin-token"),
  "--issuer",
  ORIGIN,
];
const browsers = ["--refresh", publicUrl, "--sign-in", `${ORIGIN}/v1/auth/login`];
await firstLine(run("the check", process.execPath, [program, ...check, ...browsers, "--port", CHECK_PORT]));

run("the application", process.execPath, [join(import.meta.dirname, "application.ts")], { PORT: APPLICATION_PORT });
const conf = join(directory, "nginx/nginx.conf");
writeFileSync(conf, nginxConf());
run("nginx", NGINX, ["-p", join(directory, "nginx"), "-c", conf, "-e", "stderr"]);
if (!stopping) console.log(`Open ${ORIGIN}/orders`);
