/** A service with subscriptions. Its sessions are created and ended by plain HTTP requests, because those use the least CPU time. */

import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { Agent, request } from "node:http";
import { text } from "node:stream/consumers";
import { startRedis, startRedisCluster } from "../../support/redis.ts";
import { startService, withKeys } from "../../support/service.ts";

const agent = new Agent({ keepAlive: true, maxSockets: 64 });
const UNLIMITED = { RATE_LIMIT_CREATE: "off", OVERLOAD_MAX_WAITING: "0", OVERLOAD_MAX_LOOP_DELAY: "0" };

export type Open = { readonly accessToken: string; readonly sessionId: string };

/** The stores by name, each with the function that starts its servers. */
const SERVERS = { embedded: async () => undefined, redis: startRedis, cluster: startRedisCluster };

type StoreName = keyof typeof SERVERS;

/** Returns the name of a store. @throws Error if no store has that name */
export function storeNamed(text: string): StoreName {
  if (!Object.hasOwn(SERVERS, text)) throw new Error(`--store ${text}: ${Object.keys(SERVERS).join(", ")}`);
  return text as StoreName;
}

export async function openService(store: StoreName) {
  const redis = await SERVERS[store]();
  const shared =
    redis === undefined ? {} : { REDIS_URL: redis.url, DATA_DIR: withKeys(), ADMIN_TOKENS: "a".repeat(40) };
  const env = { SIGNALS: "on", SIGNALS_ALLOW_PRIVATE: "on", LOG_LEVEL: "silent", ...UNLIMITED, ...shared };
  const service = await startService(env);
  const { adminUrl, publicUrl, adminToken } = service;

  async function call(url: string, method: string, token: string, body?: object): Promise<Record<string, unknown>> {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const asked = request(url, { method, agent, headers });
    asked.end(body === undefined ? undefined : JSON.stringify(body));
    const [response] = await once(asked, "response");
    const received = await text(response);
    // On a busy machine the service may refuse a call and ask for another attempt.
    if (response.statusCode === 503) return call(url, method, token, body);
    if (response.statusCode >= 300) throw new Error(`${url}: ${response.statusCode} ${received}`);
    return received === "" ? {} : JSON.parse(received);
  }

  const admin = (path: string, body: object) => call(`${adminUrl}/auth.admin.v1.${path}`, "POST", adminToken, body);
  return {
    pid: service.pid,
    async subscribe(endpoint: string): Promise<void> {
      await admin("SignalsAdminService/CreateSubscription", { kind: "SUBSCRIPTION_KIND_WEBHOOK", endpoint });
    },
    async logIn(): Promise<Open> {
      const { session, accessToken } = await admin("SessionAdminService/CreateSession", { subject: randomUUID() });
      return { accessToken: String(accessToken), sessionId: (session as { sessionId: string }).sessionId };
    },
    logOut: ({ accessToken }: Open) => call(`${publicUrl}/v1/auth/logout`, "DELETE", accessToken),
    async stop(): Promise<void> {
      await service.kill9();
      await redis?.stop();
    },
  };
}

export type BenchService = Awaited<ReturnType<typeof openService>>;
