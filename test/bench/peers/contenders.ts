/** What bench:peers compares. Each contender is a process of its own, with its store, and the client that its documentation describes. */
import { createHash, randomBytes } from "node:crypto";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "../../support/free-port.ts";
import { startProgram, whileRunning } from "../../support/processes.ts";
import { type RedisServer, startRedis } from "../../support/redis.ts";
import { scratch } from "../../support/service.ts";

/** What a refresh comes to. `kept` is what the client presents next. */
export type Outcome = {
  readonly kept: string;
  /** False if the response says that the user is signed out. */
  readonly served: boolean;
};

export type Running = {
  readonly pid: number;
  readonly redis: RedisServer | undefined;
  /** Signs a user in. Returns what the client presents at its first refresh. */
  readonly logIn: () => Promise<string>;
  readonly refresh: (kept: string) => Promise<Outcome>;
  readonly stop: () => Promise<void>;
};

export type Contender = { readonly name: string; readonly start: () => Promise<Running> };

const COMMAND = join(import.meta.dirname, "../../../dist/packages/service/bin/session-service.cjs");
const ADMIN_TOKEN = "bench-admin-token-bench-admin-token";
async function send(url: string, init: RequestInit = {}) {
  const response = await fetch(url, { redirect: "manual", ...init });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

/** Refreshes, and repeats that while the server is unavailable, as clients do, since it is no logout. Tells of what is repeated. */
async function sendRefresh(url: string, init: RequestInit, attempts = 40) {
  const reply = await send(url, init);
  if (reply.status < 500 || attempts === 1) return reply;
  console.error(`${url}: ${reply.status}`);
  await sleep(250);
  return sendRefresh(url, init, attempts - 1);
}

/** @throws if the reply is neither a success nor the refusal */
function expectSuccess({ status, text }: Awaited<ReturnType<typeof send>>, refusal?: number): void {
  if (status >= 400 && status !== refusal) throw new Error(`${status} ${text}`);
}

/** Adds the cookies of a response to those of a browser, as `name=value; …`. */
function withCookies(kept: string, headers: Headers): string {
  const jar = new Map(kept.split("; ").map((pair): [string, string] => [pair.split("=", 1)[0] ?? "", pair]));
  jar.delete("");
  for (const line of headers.getSetCookie()) {
    const [pair = ""] = line.split(";", 1);
    const name = pair.split("=", 1)[0] ?? "";
    if (/max-age=0\b|1970/i.test(line)) jar.delete(name);
    else jar.set(name, pair);
  }
  return [...jar.values()].join("; ");
}

const json = { "content-type": "application/json" };
const redisWithFile = () => startRedis("--appendonly", "yes");

function startOurs(store: "redis" | "embedded") {
  return async (): Promise<Running> => {
    const redis = store === "redis" ? await redisWithFile() : undefined;
    const [port, adminPort, directory] = [await freePort(), await freePort(), scratch()];
    const [url, adminUrl] = [`http://127.0.0.1:${port}`, `http://127.0.0.1:${adminPort}`];
    // A few sessions carry the load of many, and the load of the machine is no reason to refuse calls.
    const limits = { RATE_LIMIT_REFRESH: "1000000/1s", OVERLOAD_MAX_LOOP_DELAY: "10s" };
    const keys = startProgram(process.execPath, [COMMAND, "keys", "create", "--file", join(directory, "keys.json")]);
    await keys.exited;
    const program = startProgram(process.execPath, [COMMAND], {
      env: {
        ...{ PORT: String(port), ADMIN_PORT: String(adminPort), ADMIN_TOKENS: ADMIN_TOKEN, ISSUER: url, ...limits },
        ...{ KEYS_FILE: join(directory, "keys.json"), DATA_DIR: join(directory, "data") },
        ...(redis && { REDIS_URL: redis.url }),
      },
    });
    await whileRunning(program, async () => expectSuccess(await send(`${url}/readyz`)));
    let users = 0;
    return {
      pid: program.pid,
      redis,
      async logIn() {
        const reply = await send(`${adminUrl}/auth.admin.v1.SessionAdminService/CreateSession`, {
          method: "POST",
          headers: { ...json, authorization: `Bearer ${ADMIN_TOKEN}` },
          body: JSON.stringify({ subject: `user-${++users}` }),
        });
        expectSuccess(reply);
        return `refresh_token=${JSON.parse(reply.text).refreshToken}`;
      },
      async refresh(kept) {
        const reply = await sendRefresh(`${url}/v1/auth/refresh`, { method: "POST", headers: { cookie: kept } });
        expectSuccess(reply, 401);
        return { kept: withCookies(kept, reply.headers), served: reply.status === 200 };
      },
      async stop() {
        await program.stop();
        await redis?.stop();
      },
    };
  };
}

async function startPeer(file: string, port: number, path: string, env: Readonly<Record<string, string>>) {
  const program = startProgram(process.execPath, [join(import.meta.dirname, file)], {
    env: { PORT: String(port), NODE_ENV: "production", ...env },
  });
  await whileRunning(program, async () => expectSuccess(await send(`http://127.0.0.1:${port}${path}`)));
  return program;
}

function startOidcProvider(rotation: "default" | "off") {
  return async (): Promise<Running> => {
    const [redis, port] = [await redisWithFile(), await freePort()];
    const url = `http://127.0.0.1:${port}`;
    const discovery = "/.well-known/openid-configuration";
    const program = await startPeer("oidc-provider.js", port, discovery, { REDIS_URL: redis.url, ROTATION: rotation });
    const redirect = { client_id: "app", redirect_uri: "https://app.example/callback" };
    const resource: Readonly<Record<string, string>> = rotation === "off" ? { resource: "urn:api" } : {};
    // Without `openid` there is no ID token: a refresh signs one token in each form, as this service does.
    const scope = rotation === "off" ? "api" : "openid";
    return {
      pid: program.pid,
      redis,
      async logIn() {
        const verifier = randomBytes(32).toString("base64url");
        const challenge = createHash("sha256").update(verifier).digest("base64url");
        const query = new URLSearchParams({
          ...{ ...redirect, ...resource, response_type: "code", scope },
          ...{ code_challenge: challenge, code_challenge_method: "S256" },
        });
        let [next, cookie] = [`${url}/auth?${query}`, ""];
        while (next.startsWith(url)) {
          const reply = await send(next, { headers: { cookie } });
          cookie = withCookies(cookie, reply.headers);
          const location = reply.headers.get("location");
          if (location === null) throw new Error(`${reply.status} ${reply.text}`);
          next = new URL(location, url).href;
        }
        const code = new URL(next).searchParams.get("code") ?? "";
        const form = { ...redirect, grant_type: "authorization_code", code, code_verifier: verifier };
        const reply = await send(`${url}/token`, { method: "POST", body: new URLSearchParams(form) });
        expectSuccess(reply);
        return JSON.parse(reply.text).refresh_token;
      },
      async refresh(kept) {
        const form = { client_id: "app", grant_type: "refresh_token", refresh_token: kept };
        const reply = await sendRefresh(`${url}/token`, { method: "POST", body: new URLSearchParams(form) });
        expectSuccess(reply, 400);
        const served = reply.status === 200;
        return { kept: served ? JSON.parse(reply.text).refresh_token : kept, served };
      },
      async stop() {
        await program.stop();
        await redis.stop();
      },
    };
  };
}

function startBetterAuth(settings: "default" | "renewed" | "cached" | "token") {
  return async (): Promise<Running> => {
    const [port, database] = [await freePort(), join(scratch(), "auth.db")];
    const redis = settings === "default" ? undefined : await redisWithFile();
    const origin = `http://127.0.0.1:${port}`;
    const url = `${origin}/api/auth`;
    const program = await startPeer("better-auth.js", port, "/api/auth/ok", {
      ...{ DATABASE: database, SETTINGS: settings },
      ...(redis && { REDIS_URL: redis.url }),
    });
    let users = 0;
    return {
      pid: program.pid,
      redis,
      async logIn() {
        const user = { email: `user-${++users}@example.com`, password: "a password of a user", name: "A user" };
        const headers = { ...json, origin };
        const reply = await send(`${url}/sign-up/email`, { method: "POST", headers, body: JSON.stringify(user) });
        expectSuccess(reply);
        return withCookies("", reply.headers);
      },
      async refresh(kept) {
        const path = settings === "token" ? "/token" : "/get-session";
        const reply = await sendRefresh(url + path, { headers: { cookie: kept } });
        expectSuccess(reply, 401);
        const served = reply.status === 200 && reply.text !== "null";
        return { kept: withCookies(kept, reply.headers), served };
      },
      async stop() {
        await program.stop();
        await redis?.stop();
      },
    };
  };
}

export const CONTENDERS: readonly Contender[] = [
  { name: "this service, Redis", start: startOurs("redis") },
  { name: "this service, embedded", start: startOurs("embedded") },
  { name: "node-oidc-provider, default", start: startOidcProvider("default") },
  { name: "the same, `rotateRefreshToken: false`", start: startOidcProvider("off") },
  { name: "better-auth, default", start: startBetterAuth("default") },
  { name: "the same, `updateAge: 0`", start: startBetterAuth("renewed") },
  { name: "the same, `cookieCache`", start: startBetterAuth("cached") },
  { name: "the same, a JWT each time", start: startBetterAuth("token") },
];
