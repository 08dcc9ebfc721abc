/**
 * `npm run test:spring`: Spring Security of Maven Central as resource server, introspection client and receiver of logout tokens, beside a
 * service whose keys are of ES256 and one whose keys are of RS256. Needs Java 17 and Maven, which test/setup.sh installs with SPRING=long.
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
/** How long Spring may take to start, in ms. It only tells a hang. */
const START_MS = 180_000;

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
  const env = {
    ...{ PATH: process.env.PATH, DATA_DIR: join(directory, "data"), PORT: "0", ADMIN_PORT: "0", DRAIN_DELAY: "0" },
    ...{ SIGNALS: "on", SIGNALS_ALLOW_PRIVATE: "on", SIGNALS_RSA_KEY_FILE: keyFile, SIGNING_ALGORITHM: alg },
    LOG_LEVEL: "error",
  };
  const main = join(HERE, "../../src/service/main.ts");
  const child = spawn(process.execPath, [main], { env, stdio: ["ignore", "pipe", "inherit"] });
  const [line] = await lineOf(child, /^.*"event":"ready".*$/);
  const ready = JSON.parse(line);
  const token = readFileSync(join(env.DATA_DIR, "admin-token"), "utf8").trim();
  return { publicUrl: ready.public, adminUrl: ready.admin, token, child };
}

async function startSpring({ publicUrl, adminUrl, token }: Urls) {
  const options = {
    issuer: publicUrl,
    introspection: `${adminUrl}/v1/oauth/introspect`,
    "introspection-id": "DATA_DIR/admin-token",
    "introspection-secret": token,
    "server.port": "0",
    "server.address": "127.0.0.1",
  };
  const given = Object.entries(options).map(([name, value]) => `--${name}=${value}`);
  const child = spawn("java", ["-jar", join(HERE, "target/spring.jar"), ...given], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [, port] = await lineOf(child, /Tomcat started on port (\d+)/);
  return { url: `http://127.0.0.1:${port}`, child };
}

async function prove(alg: string): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), "session-service-spring-"));
  const service = await startService(alg, directory);
  const spring = await startSpring(service).catch(async (error: unknown) => {
    await stop(service.child);
    throw error;
  });
  const call = async (path: string, body: object) => {
    const headers = { "content-type": "application/json", authorization: `Bearer ${service.token}` };
    const url = `${service.adminUrl}/auth.admin.v1.${path}`;
    const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
    assert.equal(response.status, 200, `${path}: ${response.status}`);
    return (await response.json()) as Reply;
  };
  const ask = async (path: string, token: string) => {
    const response = await fetch(spring.url + path, { headers: { authorization: `Bearer ${token}` } });
    return `${response.status} ${response.status === 200 ? await response.text() : ""}`.trim();
  };
  const accepts = async (signingAlg: string) => {
    const endpoint = `${spring.url}/logout/connect/back-channel/service?${signingAlg}`;
    const given = { kind: "SUBSCRIPTION_KIND_BACKCHANNEL", endpoint, audience: ["app"], signingAlg };
    const { subscription } = await call("SignalsAdminService/CreateSubscription", given);
    const { subscriptionId } = subscription;
    return (await call("SignalsAdminService/TestSubscription", { subscriptionId })).accepted;
  };
  try {
    const created = await call("SessionAdminService/CreateSession", { subject: "alice", clientId: "app" });
    const { accessToken, session } = created;
    const forged = accessToken.replace(/\.[^.]{10}/, ".AAAAAAAAAA");
    assert.equal(await ask("/jwt", accessToken), "200 alice", "the resource server, by issuer-uri");
    assert.equal(await ask("/jwt", forged), "401", "the resource server refuses a forged token");
    assert.equal(await ask("/opaque", accessToken), "200 alice", "the introspection client, by Basic");
    await call("SessionAdminService/RevokeSession", { sessionId: session.sessionId });
    assert.equal(await ask("/opaque", accessToken), "401", "the introspection client sees the logout");
    assert.equal(await accepts("RS256"), true, "the receiver of logout tokens takes RS256");
    assert.equal(await accepts(""), alg === "RS256", "the receiver of logout tokens takes RS256 alone");
    console.log(`${alg}: Spring Security accepts tokens, introspects, and takes logout tokens of RS256`);
  } finally {
    await Promise.all([stop(spring.child), stop(service.child)]);
    rmSync(directory, { recursive: true });
  }
}

execFileSync("mvn", ["-q", "-B", "package"], { cwd: HERE, stdio: "inherit" });
for (const alg of ["ES256", "RS256"]) await prove(alg);
