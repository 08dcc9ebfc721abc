/**
 * Faults while browsers load pages through nginx, by forward auth with `--refresh` and `--sign-in`, from two services and two checks: the
 * provider is away, an instance is killed, services and checks are replaced one after the other. `npm run test:gateway-faults` is its long form.
 */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Balancer, startBalancer } from "../../support/balancer.ts";
import { freePort } from "../../support/free-port.ts";
import { startProvider } from "../../support/oidc-provider.ts";
import { type RedisServer, startRedis } from "../../support/redis.ts";
import { type Service, startService, withKeys } from "../../support/service.ts";
import { logIn } from "../../support/sessions.ts";
import { type ForwardAuth, startForwardAuth } from "./command.ts";
import { type Gateway, startGateway } from "./gateways.ts";

const IS_LONG = process.env.GATEWAY_FAULTS === "long";
const BROWSERS = IS_LONG ? 20 : 6;
/** How many pages a browser loads at the same time. */
const TABS = 3;
/** How often browsers load pages during a fault. */
const ROUNDS = IS_LONG ? 60 : 6;
/** The pause of the simulated browsers between two rounds, in ms. */
const PACE_MS = IS_LONG ? 1_000 : 250;
/** Tokens with less left than this are renewed (`minValidityMs` of the server kit). The tokens of this test live a little longer. */
const RENEWED_BEFORE_MS = 10_000;
const TOKEN_TTL_MS = 15_000;
/** The life of a token is shortened by up to 20 %. */
const SHORTEST_LIFE_MS = 0.8 * TOKEN_TTL_MS - RENEWED_BEFORE_MS;
const NAVIGATION = { "sec-fetch-mode": "navigate", "sec-fetch-dest": "document", "sec-fetch-site": "none" };

type User = { readonly jar: Map<string, string>; readonly sid: string };

let redis: RedisServer;
let provider: Awaited<ReturnType<typeof startProvider>>;
let application: Server;
let balancers: { readonly api: Balancer; readonly admin: Balancer; readonly check: Balancer };
let gateway: Gateway;
let origin: string;
let env: Readonly<Record<string, string>>;
const services: Service[] = [];
const checks: ForwardAuth[] = [];
const replaced: Service[] = [];
const users: User[] = [];
let startedAt: number;

async function startOneService(): Promise<Service> {
  const service = await startService(env);
  await Promise.all([balancers.api.add(service.publicUrl), balancers.admin.add(service.adminUrl)]);
  services.push(service);
  return service;
}

async function startCheck(): Promise<void> {
  const at = { ...(services[0] as Service), adminUrl: balancers.admin.url };
  const browsers = ["--refresh", balancers.api.url, "--sign-in", `${origin}/v1/auth/login`];
  const check = await startForwardAuth(at, origin, ...browsers);
  await balancers.check.add(check.url);
  checks.push(check);
}

beforeAll(async () => {
  const port = await freePort();
  origin = `https://localhost:${port}`;
  [redis, provider] = await Promise.all([
    startRedis(),
    startProvider({
      clients: [
        { client_id: "app", token_endpoint_auth_method: "none", redirect_uris: [`${origin}/v1/auth/callback`] },
      ],
    }),
  ]);
  const [api, admin, check] = await Promise.all([startBalancer(), startBalancer(), startBalancer()]);
  balancers = { api, admin, check };
  env = {
    ...{ REDIS_URL: redis.url, DATA_DIR: withKeys(), ISSUER: origin, ADMIN_TOKENS: "token-".repeat(8) },
    ...{ ACCESS_COOKIE: "access_token", COOKIE_PATH: "/", ACCESS_TOKEN_TTL: `${TOKEN_TTL_MS}ms` },
    ...{ OIDC_ISSUER: provider.issuer, OIDC_CLIENT_ID: "app", SIGN_IN_ORIGIN: origin, RATE_LIMIT_REFRESH: "off" },
    ...{ DRAIN_DELAY: "1s", LOG_LEVEL: "debug" },
  };
  application = createServer(({ headers }, response) => response.end(String(headers["x-auth-session"])));
  await new Promise<void>((resolve) => application.listen(0, "127.0.0.1", resolve));
  await Promise.all([startOneService(), startOneService()]);
  await Promise.all([startCheck(), startCheck()]);
  const app = `127.0.0.1:${(application.address() as AddressInfo).port}`;
  gateway = await startGateway("nginx", { port, app, check: new URL(check.url).host, api: new URL(api.url).host });
  startedAt = Date.now();
  for (let at = 0; at < BROWSERS; at++) {
    const { sid, refreshToken, accessToken } = await logIn(services[0] as Service);
    users.push({
      sid,
      jar: new Map([
        ["refresh_token", refreshToken],
        ["access_token", accessToken],
      ]),
    });
  }
});
afterAll(async () => {
  await gateway?.stop();
  await Promise.all([...checks, ...services].map((one) => one.stop()));
  for (const one of Object.values(balancers ?? {})) one.close();
  application?.close();
  provider?.stop();
  await redis?.stop();
});

/** Loads a page in several tabs of a browser. Returns the statuses; a tab that gets 502 or 503 shows an error that a reload repairs. */
async function load({ jar, sid }: User): Promise<readonly number[]> {
  const cookie = [...jar].map((pair) => pair.join("=")).join("; ");
  const pages = await Promise.all(
    Array.from({ length: TABS }, (_, tab) => gateway.send(`/page?tab=${tab}`, { ...NAVIGATION, cookie })),
  );
  for (const { status, body, headers } of pages) {
    if (status === 200) expect(body).toBe(sid);
    for (const line of headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      jar.set(name, value);
    }
  }
  return pages.map(({ status }) => status);
}

/** Loads pages in all browsers, over and over, while something happens. Returns how often each status came. */
async function loadDuring(fault: () => Promise<unknown>): Promise<ReadonlyMap<number, number>> {
  const seen = new Map<number, number>();
  const count = (statuses: readonly number[]) => {
    for (const status of statuses) seen.set(status, (seen.get(status) ?? 0) + 1);
  };
  let isOver = false;
  const done = fault().finally(() => {
    isOver = true;
  });
  for (let round = 0; round < ROUNDS || !isOver; round++) {
    for (const statuses of await Promise.all(users.map(load))) count(statuses);
    await sleep(PACE_MS);
  }
  await done;
  for (const user of users) expect(await load(user)).toEqual(Array.from({ length: TABS }, () => 200));
  return seen;
}

/** Nobody was signed out, and nobody was led to the sign-in: what came in place of a page is an error that a reload repairs. */
function expectNoLogout(seen: ReadonlyMap<number, number>): void {
  const wrong = [...seen.keys()].filter((status) => ![200, 502, 503, 504].includes(status));
  expect([wrong, seen.get(200)]).toEqual([[], expect.any(Number)]);
}

test("while the provider is away, who is signed in stays so, and a sign-in is a page that says so, without a loop", async () => {
  provider.setDown(true);
  const seen = await loadDuring(async () => {
    const page = await gateway.send("/page", NAVIGATION);
    expect(page.status).toBe(302);
    const { pathname, search } = new URL(page.headers.get("location") ?? "");
    const login = await gateway.send(pathname + search, NAVIGATION);
    expect([login.status, login.headers.get("location")]).toEqual([503, null]);
  });
  provider.setDown(false);
  expectNoLogout(seen);
});

test("a service that is killed signs nobody out", async () => {
  const seen = await loadDuring(async () => {
    const killed = services.shift() as Service;
    replaced.push(killed);
    await killed.kill9();
    balancers.api.remove(killed.publicUrl);
    balancers.admin.remove(killed.adminUrl);
    await startOneService();
  });
  expectNoLogout(seen);
});

test("services and checks that are replaced one after the other sign nobody out", async () => {
  const seen = await loadDuring(async () => {
    for (const old of [...services]) {
      await startOneService();
      services.splice(services.indexOf(old), 1);
      replaced.push(old);
      const stopped = old.stop();
      balancers.api.remove(old.publicUrl);
      balancers.admin.remove(old.adminUrl);
      await stopped;
    }
    for (const old of [...checks]) {
      await startCheck();
      checks.splice(checks.indexOf(old), 1);
      balancers.check.remove(old.url);
      await old.stop();
    }
  });
  expectNoLogout(seen);
});

test("a session is rotated at most once in the life of a token, and each check refreshes it once", () => {
  const lives = Math.ceil((Date.now() - startedAt) / SHORTEST_LIFE_MS) + 1;
  const log = [...services, ...replaced].flatMap((one) => one.stderr().split("\n"));
  for (const { sid } of users) {
    const refreshes = log.filter((line) => line.includes('"event":"session_renewed"') && line.includes(sid));
    const rotations = refreshes.filter((line) => line.includes('"outcome":"rotate"'));
    expect(rotations.length).toBeGreaterThan(0);
    expect(rotations.length).toBeLessThanOrEqual(lives);
    // Two checks serve at a time, and each of them was replaced once.
    expect(refreshes.length).toBeLessThanOrEqual(2 * lives + 2);
  }
});
