/**
 * `npm run test:spring`: Spring Security of Maven Central as resource server, client of introspection and token exchange, and receiver of
 * logout tokens, beside a service whose keys are of ES256 and one whose keys are of RS256; and examples/spring. Needs Java 17 and Maven, which
 * test/setup.sh installs with SPRING=long.
 */
import { strict as assert } from "node:assert";
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pemOf } from "../support/rsa-key.ts";

const HERE = import.meta.dirname;
const EXAMPLE = join(HERE, "../../examples/spring");
/** How long Spring may take to start, in ms. It only tells a hang. */
const START_MS = 180_000;

/** What the application may exchange. */
const EXCHANGE = {
  ...{ client_id: "DATA_DIR/admin-token", subject_token_audiences: ["app"], audiences: ["https://orders.example"] },
};

/** The members of responses of the admin API that are read here. */
type Reply = {
  readonly accessToken: string;
  readonly session: { readonly sessionId: string };
  readonly subscription: { readonly subscriptionId: string };
  readonly accepted: boolean;
};

type Urls = { readonly publicUrl: string; readonly adminUrl: string; readonly token: string };

/** Resolves with the first line of a process that matches. Rejects with its output if the process ends first. */
async function lineOf(child: ChildProcess, pattern: RegExp): Promise<RegExpExecArray> {
  const lines: string[] = [];
  const limit = setTimeout(() => child.kill("SIGKILL"), START_MS);
  for await (const line of createInterface({ input: child.stdout as NodeJS.ReadableStream })) {
    lines.push(line);
    const found = pattern.exec(line);
    if (found === null) continue;
    clearTimeout(limit);
    child.stdout?.resume();
    return found;
  }
  throw new Error(`the process ended before ${pattern}:\n${lines.join("\n")}`);
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  child.kill("SIGTERM");
  await once(child, "exit");
}

async function startService(alg: string, directory: string): Promise<Urls & { readonly child: ChildProcess }> {
  const keyFile = join(directory, "signals.pem");
  writeFileSync(keyFile, pemOf("pkcs8"), { mode: 0o600 });
  const policiesFile = join(directory, "policies.json");
  writeFileSync(policiesFile, JSON.stringify({ token_exchange: [EXCHANGE] }), { mode: 0o600 });
  const env = {
    ...{ PATH: process.env.PATH, DATA_DIR: join(directory, "data"), PORT: "0", ADMIN_PORT: "0", DRAIN_DELAY: "0" },
    ...{ SIGNALS: "on", SIGNALS_ALLOW_PRIVATE: "on", SIGNALS_RSA_KEY_FILE: keyFile, SIGNING_ALGORITHM: alg },
    ...{ SESSION_POLICIES_FILE: policiesFile, LOG_LEVEL: "error" },
  };
  const main = join(HERE, "../../src/service/main.ts");
  const child = spawn(process.execPath, [main], { env, stdio: ["ignore", "pipe", "inherit"] });
  const [line] = await lineOf(child, /^.*"event":"ready".*$/);
  const ready = JSON.parse(line);
  const token = readFileSync(join(env.DATA_DIR, "admin-token"), "utf8").trim();
  return { publicUrl: ready.public, adminUrl: ready.admin, token, child };
}

const startReceiver = ({ publicUrl, adminUrl, token }: Urls) =>
  startSpring(join(HERE, "target/spring.jar"), {
    issuer: publicUrl,
    introspection: `${adminUrl}/v1/oauth/introspect`,
    "introspection-id": "DATA_DIR/admin-token",
    "introspection-secret": token,
  });

async function startSpring(jar: string, properties: Readonly<Record<string, string>>) {
  const options = { ...properties, "server.port": "0", "server.address": "127.0.0.1" };
  const given = Object.entries(options).map(([name, value]) => `--${name}=${value}`);
  const child = spawn("java", ["-jar", jar, ...given], { stdio: ["ignore", "pipe", "inherit"] });
  const [, port] = await lineOf(child, /Tomcat started on port (\d+)/);
  return { url: `http://127.0.0.1:${port}`, child };
}

type Spring = Awaited<ReturnType<typeof startSpring>>;
type World = { readonly service: Urls; readonly spring: Spring };

/** Runs `body` with a service and an application, and ends both. */
async function withApplication(
  alg: string,
  start: (service: Urls) => Promise<Spring>,
  body: (world: World) => Promise<void>,
) {
  const directory = mkdtempSync(join(tmpdir(), "session-service-spring-"));
  const service = await startService(alg, directory);
  const spring = await start(service).catch(async (error: unknown) => {
    await stop(service.child);
    throw error;
  });
  try {
    await body({ service, spring });
  } finally {
    await Promise.all([stop(spring.child), stop(service.child)]);
    rmSync(directory, { recursive: true });
  }
}

const callOf = (service: Urls) => async (path: string, body: object) => {
  const headers = { "content-type": "application/json", authorization: `Bearer ${service.token}` };
  const url = `${service.adminUrl}/auth.admin.v1.${path}`;
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
  assert.equal(response.status, 200, `${path}: ${response.status}`);
  return (await response.json()) as Reply;
};

const askOf = (spring: Spring) => async (path: string, token: string) => {
  const response = await fetch(spring.url + path, { headers: { authorization: `Bearer ${token}` } });
  return `${response.status} ${response.status === 200 ? await response.text() : ""}`.trim();
};

async function prove(alg: string, { service, spring }: World): Promise<void> {
  const [call, ask] = [callOf(service), askOf(spring)];
  const accepts = async (signingAlg: string) => {
    const endpoint = `${spring.url}/logout/connect/back-channel/service?${signingAlg}`;
    const given = { kind: "SUBSCRIPTION_KIND_BACKCHANNEL", endpoint, audience: ["app"], signingAlg };
    const { subscription } = await call("SignalsAdminService/CreateSubscription", given);
    const { subscriptionId } = subscription;
    return (await call("SignalsAdminService/TestSubscription", { subscriptionId })).accepted;
  };
  const created = await call("SessionAdminService/CreateSession", { subject: "alice", clientId: "app" });
  const { accessToken, session } = created;
  const forged = accessToken.replace(/\.[^.]{10}/, ".AAAAAAAAAA");
  assert.equal(await ask("/jwt", accessToken), "200 alice", "the resource server, by issuer-uri");
  assert.equal(await ask("/jwt", forged), "401", "the resource server refuses a forged token");
  assert.equal(await ask("/opaque", accessToken), "200 alice", "the introspection client, by Basic");
  await proveExchange({ service, spring });
  await call("SessionAdminService/RevokeSession", { sessionId: session.sessionId });
  assert.equal(await ask("/opaque", accessToken), "401", "the introspection client sees the logout");
  assert.equal(await accepts("RS256"), true, "the receiver of logout tokens takes RS256");
  assert.equal(await accepts(""), alg === "RS256", "the receiver of logout tokens takes RS256 alone");
  console.log(
    `${alg}: Spring Security accepts tokens, introspects, exchanges tokens, and takes logout tokens of RS256`,
  );
}

/** The application exchanges the tokens of its users, as clients of RFC 8693 do, while their sessions are live. */
async function proveExchange({ service, spring }: World): Promise<void> {
  const [call, ask] = [callOf(service), askOf(spring)];
  const logIn = (subject: string) =>
    call("SessionAdminService/CreateSession", { subject, clientId: "app", audiences: [service.publicUrl, "app"] });
  const live = await logIn("alice");
  const [, , token = ""] = /^(\d+) (.*)$/.exec(await ask("/exchange", live.accessToken)) ?? [];
  const claims = JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString());
  assert.equal(claims.aud, "https://orders.example", "the client of the token exchange gets the resource");
  assert.equal(claims.sid, live.session.sessionId, "the exchanged token is of the same session");
  const over = await logIn("bob");
  await call("SessionAdminService/RevokeSession", { sessionId: over.session.sessionId });
  assert.equal(
    await ask("/exchange", over.accessToken),
    "200 invalid_request",
    "a session that is over exchanges nothing",
  );
}

/** The example of docs/tasks/recipes.md: an access token is accepted until the logout token of its session has arrived. */
async function proveExample({ service, spring }: World): Promise<void> {
  const [call, ask] = [callOf(service), askOf(spring)];
  const claims = { role: "editor" };
  const { accessToken, session } = await call("SessionAdminService/CreateSession", { subject: "alice", claims });
  const endpoint = `${spring.url}/session-ended`;
  await call("SignalsAdminService/CreateSubscription", {
    kind: "SUBSCRIPTION_KIND_BACKCHANNEL",
    endpoint,
    audience: ["orders"],
  });
  const forged = await fetch(endpoint, { method: "POST", body: new URLSearchParams({ logout_token: accessToken }) });
  assert.equal(forged.status, 400, "an access token is no logout token");
  assert.match(await ask("/api/me", accessToken), /^200 .*"role":"editor"/);
  await call("SessionAdminService/RevokeSession", { sessionId: session.sessionId });
  const limit = Date.now() + START_MS;
  while ((await ask("/api/me", accessToken)) !== "401") assert.ok(Date.now() < limit, "the session has not ended");
  console.log("examples/spring: accepts tokens until the logout token arrives");
}

/** Without the keys, the example cannot tell whether a logout token is good: the sender has to repeat it. */
async function proveOutage({ service, spring }: World): Promise<void> {
  const { accessToken } = await callOf(service)("SessionAdminService/CreateSession", { subject: "alice" });
  const send = async (token: string) => {
    const body = new URLSearchParams({ logout_token: token });
    return (await fetch(`${spring.url}/session-ended`, { method: "POST", body })).status;
  };
  assert.deepEqual([await send(accessToken), await send("bad")], [503, 400], "a key set that cannot be read");
  console.log("examples/spring: asks for the logout token again while the keys cannot be read");
}

for (const cwd of [HERE, EXAMPLE]) execFileSync("mvn", ["-q", "-B", "package"], { cwd, stdio: "inherit" });
for (const alg of ["ES256", "RS256"]) await withApplication(alg, startReceiver, (world) => prove(alg, world));
const startExample = ({ publicUrl }: Urls) => startSpring(join(EXAMPLE, "target/orders.jar"), { issuer: publicUrl });
await withApplication("ES256", startExample, proveExample);
const startWithoutKeys = ({ publicUrl }: Urls) =>
  startSpring(join(EXAMPLE, "target/orders.jar"), { issuer: publicUrl, keys: `${publicUrl}/nothing` });
await withApplication("ES256", startWithoutKeys, proveOutage);
