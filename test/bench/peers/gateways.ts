/**
 * Compares forward auth of this service with oauth2-proxy in the same scenarios: nginx in front of an application, and node-oidc-provider as
 * the provider. oauth2-proxy is built by Go from its module, and is set up as its documentation says for nginx and for a provider that gives
 * refresh tokens. One cookie jar stands for a browser. OAUTH2_PROXY=/path/to/oauth2-proxy takes a program that is built already.
 */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startForwardAuth } from "../../service/forward-auth/command.ts";
import { freePort } from "../../support/free-port.ts";
import { openBrowser, startProvider } from "../../support/oidc-provider.ts";
import { startProgram, whileRunning } from "../../support/processes.ts";
import { startRedis } from "../../support/redis.ts";
import { scratch, startService } from "../../support/service.ts";
import { until } from "../../support/until.ts";

export const VERSION = "v7.15.6";
/** How often what needs a renewal is repeated, and how long the provider is away, in s. */
const [ROUNDS, OUTAGE_S] = [5, 20];
const PARALLEL = 20;
const CHECKED = 6_000;
const SECRET = "a secret of the client, which is long";
/** After how many seconds what a browser holds is to be renewed. The provider's tokens live 5 s longer, access tokens of this service 10 s. */
const [SHORT, LONG] = [4, 600];

type Browser = ReturnType<typeof openBrowser>;
type Stack = {
  readonly origin: string;
  readonly loginPath: string;
  readonly provider: Awaited<ReturnType<typeof startProvider>>;
  /** The processor time of the check, in ms. */
  readonly cpuMs: () => number;
  readonly stop: () => Promise<unknown>;
};
type Contender = { readonly name: string; readonly start: (life: number) => Promise<Stack> };

const application = createServer((_, response) => response.end("page"));
await new Promise<void>((resolve) => application.listen(0, "127.0.0.1", resolve));
const app = `127.0.0.1:${(application.address() as AddressInfo).port}`;

function program(): string {
  const { OAUTH2_PROXY } = process.env;
  if (OAUTH2_PROXY !== undefined) return OAUTH2_PROXY;
  const directory = join(import.meta.dirname, "../../../node_modules/.cache/oauth2-proxy", VERSION);
  const path = join(directory, "oauth2-proxy");
  if (existsSync(path)) return path;
  const env = { ...process.env, GOBIN: directory };
  execFileSync("go", ["install", `github.com/oauth2-proxy/oauth2-proxy/v7@${VERSION}`], { env, stdio: "inherit" });
  return path;
}

async function openProvider(origin: string, callback: string, life: number, rotates: boolean) {
  const seconds = life + 5;
  const provider = await startProvider({
    clients: [
      {
        client_id: "app",
        client_secret: SECRET,
        redirect_uris: [origin + callback],
        grant_types: ["authorization_code", "refresh_token"],
        backchannel_logout_uri: `${origin}/v1/auth/backchannel-logout`,
        backchannel_logout_session_required: true,
      },
    ],
    claims: { openid: ["sub", "email", "email_verified"] },
    conformIdTokenClaims: false,
    features: { backchannelLogout: { enabled: true } },
    findAccount: (_, name) => ({
      accountId: name,
      claims: () => ({ sub: name, email: `${name}@example.com`, email_verified: true }),
    }),
    issueRefreshToken: async () => true,
    rotateRefreshToken: rotates,
    ttl: { AccessToken: seconds, IdToken: seconds, RefreshToken: 3_600, Grant: 3_600, Session: 3_600 },
  });
  // oauth2-proxy ends if the provider does not respond at its start.
  await until(() => fetch(`${provider.issuer}/.well-known/openid-configuration`));
  return provider;
}

async function startNginx(port: number, server: string) {
  const directory = scratch();
  mkdirSync(join(directory, "logs"), { recursive: true });
  const paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((name) => `${name}_temp_path ${directory};`);
  const own = `daemon off; pid ${directory}/pid; worker_processes 1; events {}`;
  writeFileSync(join(directory, "nginx.conf"), `${own}\nhttp { access_log off; ${paths.join(" ")}\n${server}\n}\n`);
  const nginx = startProgram("/usr/sbin/nginx", ["-p", directory, "-c", join(directory, "nginx.conf"), "-e", "stderr"]);
  await whileRunning(nginx, () => fetch(`http://127.0.0.1:${port}/`, { redirect: "manual" }));
  return nginx;
}

/** Returns the processor time of a process, in ms (proc(5): ticks of 10 ms). */
function cpuMsOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

async function startOurs(life: number): Promise<Stack> {
  const port = await freePort();
  const origin = `http://127.0.0.1:${port}`;
  const provider = await openProvider(origin, "/v1/auth/callback", life, true);
  const service = await startService({
    ...{ ISSUER: origin, SIGN_IN_ORIGIN: origin, TRUST_PROXY: "127.0.0.1" },
    ...{ OIDC_ISSUER: provider.issuer, OIDC_CLIENT_ID: "app", OIDC_CLIENT_SECRET: SECRET },
    ...{ ACCESS_COOKIE: "access_token", COOKIE_PATH: "/", COOKIE_SECURE: "false", RATE_LIMIT_REFRESH: "off" },
    ACCESS_TOKEN_TTL: `${life + 10}s`,
  });
  const browsers = ["--refresh", service.publicUrl, "--sign-in", `${origin}/v1/auth/login`];
  const check = await startForwardAuth(service, origin, ...browsers);
  const conf = readFileSync("examples/forward-auth/nginx.conf", "utf8")
    .replace("listen 443 ssl", `listen 127.0.0.1:${port}`)
    .replace("app.example.com;", "127.0.0.1;")
    .replace(/^ *ssl_certificate.*\n/gm, "")
    .replace("127.0.0.1:4181", new URL(check.url).host)
    .replace("127.0.0.1:8080", new URL(service.publicUrl).host)
    .replace("127.0.0.1:3000", app);
  const nginx = await startNginx(port, conf);
  return {
    origin,
    loginPath: "/v1/auth/login?return_to=/page",
    provider,
    cpuMs: () => cpuMsOf(check.pid),
    stop: async () => {
      await Promise.all([nginx.stop(), check.stop(), service.stop()]);
      provider.stop();
    },
  };
}

/** The configuration that oauth2-proxy documents for nginx, with connections to the check that are kept, as for this service. */
const oauth2Conf = (port: number, check: string) => `
upstream check { server ${check}; keepalive 32; }
server {
  listen 127.0.0.1:${port};
  proxy_http_version 1.1;
  proxy_set_header Connection "";
  proxy_set_header Host $http_host;
  proxy_set_header X-Real-IP $remote_addr;
  proxy_buffer_size 32k;
  proxy_buffers 4 32k;
  location /oauth2/ { proxy_pass http://check; proxy_set_header X-Auth-Request-Redirect $request_uri; }
  location = /oauth2/auth {
    proxy_pass http://check;
    proxy_set_header X-Forwarded-Uri $request_uri;
    proxy_set_header Content-Length "";
    proxy_pass_request_body off;
  }
  location / {
    auth_request /oauth2/auth;
    error_page 401 =403 /oauth2/sign_in;
    auth_request_set $auth_cookie $upstream_http_set_cookie;
    add_header Set-Cookie $auth_cookie;
    proxy_pass http://${app};
  }
}`;

function startOauth2Proxy(store: "cookie" | "redis", rotates: boolean) {
  return async (life: number): Promise<Stack> => {
    const [port, checkPort] = [await freePort(), await freePort()];
    const origin = `http://127.0.0.1:${port}`;
    const provider = await openProvider(origin, "/oauth2/callback", life, rotates);
    const redis = store === "redis" ? await startRedis() : undefined;
    const options = {
      provider: "oidc",
      "oidc-issuer-url": provider.issuer,
      "client-id": "app",
      "client-secret": SECRET,
      "cookie-secret": "0123456789abcdef0123456789abcdef",
      "cookie-refresh": `${life}s`,
      "cookie-secure": "false",
      "email-domain": "*",
      "redirect-url": `${origin}/oauth2/callback`,
      scope: "openid offline_access",
      upstream: "static://202",
      "http-address": `127.0.0.1:${checkPort}`,
      "reverse-proxy": "true",
      "request-logging": "false",
      "auth-logging": "false",
      ...(redis !== undefined && { "session-store-type": "redis", "redis-connection-url": redis.url }),
    };
    const check = startProgram(
      program(),
      Object.entries(options).map(([name, value]) => `--${name}=${value}`),
    );
    await whileRunning(check, () => fetch(`http://127.0.0.1:${checkPort}/ping`));
    const nginx = await startNginx(port, oauth2Conf(port, `127.0.0.1:${checkPort}`));
    return {
      origin,
      loginPath: "/oauth2/start?rd=/page",
      provider,
      cpuMs: () => cpuMsOf(check.pid),
      stop: async () => {
        await Promise.all([nginx.stop(), check.stop(), redis?.stop()]);
        provider.stop();
      },
    };
  };
}

const NAVIGATION = { "sec-fetch-mode": "navigate", "sec-fetch-dest": "document", "sec-fetch-site": "none" };

/** Loads a page. @param keeps whether the browser receives the response @returns whether it was the page, and not the way to the sign-in */
async function load({ origin }: Stack, { jar }: Browser, keeps = true): Promise<boolean | "unavailable"> {
  const cookie = [...jar].map((pair) => pair.join("=")).join("; ");
  const response = await fetch(`${origin}/page`, { redirect: "manual", headers: { ...NAVIGATION, cookie } });
  await response.arrayBuffer();
  if (keeps && response.status === 200) {
    for (const line of response.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (name !== "") jar.set(name, value);
    }
  }
  return response.status >= 500 ? "unavailable" : response.status === 200;
}

async function signIn(stack: Stack): Promise<Browser> {
  const browser = openBrowser();
  const end = await browser.signIn(stack.origin + stack.loginPath, "alice");
  if (end.status !== 200 || (await load(stack, browser)) !== true)
    throw new Error(`no sign-in: ${end.status} ${end.url}`);
  return browser;
}

const tokenRequests = ({ provider }: Stack) => provider.requests.filter((path) => path.startsWith("/token")).length;
const due = () => sleep((SHORT + 1) * 1_000);

/** 20 pages at the same time when what the browser holds is to be renewed. */
async function parallel(stack: Stack): Promise<string> {
  let [lost, out, requests] = [0, 0, 0];
  let browser = await signIn(stack);
  for (let round = 0; round < ROUNDS; round++) {
    await due();
    const before = tokenRequests(stack);
    const pages = await Promise.all(Array.from({ length: PARALLEL }, () => load(stack, browser)));
    lost += pages.filter((page) => page === false).length;
    requests += tokenRequests(stack) - before;
    await due();
    if ((await load(stack, browser)) === true) continue;
    out++;
    browser = await signIn(stack);
  }
  return `${out} of ${ROUNDS}; ${lost} of ${ROUNDS * PARALLEL}; ${(requests / ROUNDS).toFixed(1)}`;
}

/** The response that brings the renewed cookies is lost, and the browser goes on with the ones it has. */
async function lostResponse(stack: Stack): Promise<string> {
  let out = 0;
  let browser = await signIn(stack);
  for (let round = 0; round < ROUNDS; round++) {
    await due();
    await load(stack, browser, false);
    await sleep(1_000);
    await load(stack, browser);
    await sleep(8_000);
    if ((await load(stack, browser)) === true) continue;
    out++;
    browser = await signIn(stack);
  }
  return `${out} of ${ROUNDS}`;
}

async function outage(stack: Stack): Promise<string> {
  const browser = await signIn(stack);
  stack.provider.setDown(true);
  const pages: (boolean | "unavailable")[] = [];
  for (let second = 0; second < OUTAGE_S; second++) {
    pages.push(await load(stack, browser));
    await sleep(1_000);
  }
  stack.provider.setDown(false);
  const after = (await load(stack, browser)) === true ? "signed in" : "at the login";
  return `${pages.filter((page) => page === false).length} of ${pages.length}; ${after}`;
}

/** The user signs out at the provider. */
async function upstreamLogout(stack: Stack): Promise<string> {
  const browser = await signIn(stack);
  const page = await browser.send(`${stack.provider.issuer}/session/end`);
  const [, xsrf = ""] = /name="xsrf" value="([^"]+)"/.exec(page.text) ?? [];
  await browser.send(`${stack.provider.issuer}/session/end/confirm`, { xsrf, logout: "yes" });
  const startedAt = performance.now();
  while ((await load(stack, browser)) === true) {
    if (performance.now() - startedAt > 60_000) return "not within 60 s";
    await sleep(20);
  }
  return `${((performance.now() - startedAt) / 1_000).toFixed(1)} s`;
}

async function cpu({ start }: Contender): Promise<string> {
  const stack = await start(LONG);
  const browser = await signIn(stack);
  const run = async (count: number) => {
    let left = count;
    const work = async () => {
      while (left-- > 0) if ((await load(stack, browser)) === false) throw new Error("not signed in");
    };
    await Promise.all(Array.from({ length: PARALLEL }, work));
  };
  await run(CHECKED);
  const before = stack.cpuMs();
  await run(CHECKED);
  const perCheck = ((stack.cpuMs() - before) * 1_000) / CHECKED;
  await stack.stop();
  return `${perCheck.toFixed(0)} µs`;
}

const CONTENDERS: readonly Contender[] = [
  { name: "this service", start: startOurs },
  { name: "oauth2-proxy, cookie", start: startOauth2Proxy("cookie", true) },
  { name: "the same, refresh tokens that stay", start: startOauth2Proxy("cookie", false) },
  { name: "oauth2-proxy, Redis", start: startOauth2Proxy("redis", true) },
];
const SCENARIOS = { parallel, lostResponse, outage, upstreamLogout } as const;

/** Returns the outcome of each scenario for each contender, and the CPU of a check. */
export async function gateways(): Promise<string> {
  // The scenarios mostly wait, so they run for all contenders at the same time.
  const outcomes = await Promise.all(
    CONTENDERS.map(async ({ start }) => {
      const stack = await start(SHORT);
      const lines: string[] = [];
      for (const [name, scenario] of Object.entries(SCENARIOS)) lines.push(`  ${name}: ${await scenario(stack)}`);
      await stack.stop();
      return lines;
    }),
  );
  const lines = [
    "parallel: signed out; pages that lead to the login; requests to the provider in a round",
    "outage: pages that lead to the login; afterwards",
  ];
  for (const [index, contender] of CONTENDERS.entries()) {
    lines.push(contender.name, ...(outcomes[index] ?? []), `  CPU of a check: ${await cpu(contender)}`);
  }
  application.close();
  return lines.join("\n");
}
