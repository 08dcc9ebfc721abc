/** Runs the service under test as an operator would: `node src/service/main.ts` on Redis, with nearly all settings at their defaults. */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Place, ROOT, type Server, scratch, start } from "./processes.ts";

export const ADMIN_TOKEN = "bench-admin-token-bench-admin-token";
/** The issuer of every server. It is the same, so that all responses have the same size. */
export const ISSUER = "http://127.0.0.1:8080";

export type Service = Server & { readonly port: number; readonly adminUrl: string };

export type World = { readonly redisPort: number; readonly keysFile: string };

/** Makes the key ring that all servers share. */
export async function createKeys(): Promise<string> {
  const keysFile = join(scratch(), "keys.json");
  await start("anywhere", ["src/service/main.ts", "keys", "create", "--file", keysFile]);
  return keysFile;
}

/**
 * Limits that are too high to be reached, because a few sessions carry the load of many. The limiter still counts every request. A busy
 * machine does not count as overload.
 */
const NO_REFUSALS = {
  RATE_LIMIT_REFRESH: "1000000/1s",
  RATE_LIMIT_FAILURES: "1000000/1s",
  OVERLOAD_MAX_LOOP_DELAY: "10s",
};

/** @param root the checkout to run: this one, or another to compare with */
export async function startService(
  { redisPort, keysFile }: World,
  env: Readonly<Record<string, string>> = {},
  place: Place = "server",
  root: string = ROOT,
): Promise<Service> {
  const { pid, line, stop } = await start(place, [...nodeOptions(), "src/service/main.ts"], {
    cwd: root,
    env: {
      PORT: "0",
      ADMIN_PORT: "0",
      REDIS_URL: `redis://127.0.0.1:${redisPort}`,
      KEYS_FILE: keysFile,
      ADMIN_TOKENS: ADMIN_TOKEN,
      ISSUER,
      ...NO_REFUSALS,
      ...env,
    },
  });
  const ready = JSON.parse(line) as { public: string; admin: string };
  return { pid, port: Number(new URL(ready.public).port), adminUrl: ready.admin, stop };
}

/** `BENCH_NODE_OPTIONS="--cpu-prof --cpu-prof-dir=…"` profiles the service under this very load. */
function nodeOptions(): string[] {
  return (process.env.BENCH_NODE_OPTIONS ?? "").split(" ").filter((option) => option !== "");
}

export type Credentials = { readonly refreshToken: string; readonly accessToken: string };

/** How many logins are under way at once. */
const LOGINS = 32;

/** Logs `count` subjects in, with one session each. */
export async function logIn(service: Service, count: number): Promise<Credentials[]> {
  const credentials: Credentials[] = [];
  let begun = 0;
  const one = async () => {
    while (begun < count) {
      const subject = `subject-${process.hrtime.bigint()}-${begun++}`;
      credentials.push((await admin(service, "CreateSession", { subject, clientId: "bench" })) as Credentials);
    }
  };
  await Promise.all(Array.from({ length: Math.min(LOGINS, count) }, one));
  return credentials;
}

/** Returns whether the service accepts an access token now. */
export async function accepts(service: Service, token: string): Promise<boolean> {
  return ((await admin(service, "IntrospectToken", { token })) as { active?: boolean }).active === true;
}

/** How often a call that the service has refused on a busy machine is repeated. */
const ATTEMPTS = 20;

async function admin({ adminUrl }: Service, rpc: string, message: object): Promise<unknown> {
  for (let attempt = 1; ; attempt++) {
    const response = await fetch(`${adminUrl}/auth.admin.v1.SessionAdminService/${rpc}`, {
      method: "POST",
      headers: { authorization: `Bearer ${ADMIN_TOKEN}`, "content-type": "application/json" },
      body: JSON.stringify(message),
    });
    const text = await response.text();
    if (response.status === 200) return JSON.parse(text);
    if (response.status !== 503 || attempt === ATTEMPTS) throw new Error(`${rpc}: ${response.status} ${text}`);
    await sleep(Number(response.headers.get("retry-after") ?? 1) * 1000);
  }
}

/** Returns how many refreshes were served so far, by rotation outcome, from the service's own metrics. */
export async function outcomes({ adminUrl }: Service): Promise<Readonly<Record<string, number>>> {
  const text = await (await fetch(`${adminUrl}/metrics`)).text();
  const lines = text.matchAll(/^session_renewed_total\{outcome="(\w+)"\} (\d+)$/gm);
  return Object.fromEntries([...lines].map(([, outcome, count]) => [outcome, Number(count)]));
}
