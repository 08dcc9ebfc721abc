/**
 * Serves some requests to itself before the service is ready, because the first requests of a process are slow. The parts are real, except
 * those with visible effects: the store is in memory, nobody has the admin token, and nothing is logged or counted.
 */
import { createServer } from "node:http";
import { duplexPair } from "node:stream";
import type { Handler } from "../../platform/listener/exchange.ts";
import type { Config } from "../config/config.ts";
import { createAudit } from "../observability/audit.ts";
import { createSilentLog, type Logger } from "../observability/logger.ts";
import { createMetrics } from "../observability/metrics.ts";
import { systemClock } from "../session/time.ts";
import { IN_MEMORY } from "../store/embedded/schema.ts";
import { createEmbeddedStore } from "../store/embedded/store.ts";
import { loadAdminAccess } from "../tokens/admin-access.ts";
import type { KeyRing } from "../tokens/key-ring.ts";
import type { Entropy } from "../tokens/random.ts";
import { createApis } from "./apis.ts";
import { openOverloadControl } from "./open-store.ts";

type Deps = {
  readonly config: Config;
  readonly ring: KeyRing;
  readonly entropy: Entropy;
  readonly log: Logger;
};

const ADMIN = "/auth.admin.v1.SessionAdminService";

/** The settings for the requests that the service sends to itself. These requests must succeed, so no limit may refuse them. */
const UNLIMITED = {
  rateLimits: { refresh: undefined, failures: undefined, create: undefined },
  overload: { maxWaiting: 0, maxLoopDelayMs: 0 },
  // Without a reuse interval no request is too old, however long this process stalls.
  reuseIntervalMs: 0,
};

/** Never rejects. Failures are logged as bugs, and the start continues. */
export async function rehearse({ config, ring, entropy, log }: Deps): Promise<void> {
  try {
    const silent = createSilentLog();
    const metrics = createMetrics(undefined, { ofProcess: false });
    const token = entropy.text(43);
    const store = createEmbeddedStore({ path: IN_MEMORY, clock: systemClock, reuseIntervalMs: 0, markerLifeMs: 1 });
    const unlimited = { ...config, ...UNLIMITED };
    const apis = createApis({
      signIns: () => undefined,
      config: unlimited,
      log: silent,
      metrics,
      audit: createAudit(silent, metrics, () => store.shiftMs()),
      entropy,
      ring,
      access: await loadAdminAccess([{ name: "rehearsal", token }], undefined),
      store,
      overload: openOverloadControl(unlimited, silent, metrics),
      storeKind: "embedded",
      feed: { watch: notRehearsed, state: notRehearsed },
      issuer: config.issuer ?? "http://localhost",
      telemetry: undefined,
      signals: undefined,
      eventKeys: undefined,
    });
    try {
      await play(callsOf(apis.adminHandler), callsOf(apis.publicHandler), token);
    } finally {
      apis.close();
      await store.close();
    }
  } catch (err) {
    log.error({ event: "bug", err }, "the rehearsal failed: the first requests will be slow");
  }
}

function notRehearsed(): never {
  throw new Error("the feed is not rehearsed");
}

/** Makes a login, two refreshes, the usual calls of a page and of another service, and a logout. */
async function play(admin: Call, browser: Call, token: string): Promise<void> {
  const credentials = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const client = { userAgent: "rehearsal", ipAddress: "127.0.0.1" };
  const created = await admin("POST", `${ADMIN}/CreateSession`, 200, credentials, { subject: "rehearsal", client });
  const { accessToken, setCookie } = JSON.parse(created.body) as { accessToken: string; setCookie: string };
  const bearer = { authorization: `Bearer ${accessToken}` };
  let cookie = pairOf(setCookie);
  for (let refresh = 0; refresh < 2; refresh++) {
    const { cookies } = await browser("POST", "/v1/auth/refresh", 200, { cookie });
    cookie = pairOf(cookies[0] ?? "");
  }
  await browser("GET", "/v1/auth/sessions", 200, bearer);
  await admin("POST", `${ADMIN}/IntrospectToken`, 200, credentials, { token: accessToken });
  await admin("POST", `${ADMIN}/ListSessions`, 200, credentials, { subject: "rehearsal" });
  await admin("POST", `${ADMIN}/GetSession`, 400, credentials, {});
  await browser("DELETE", "/v1/auth/logout", 200, bearer);
  await browser("POST", "/v1/auth/refresh", 401, { cookie });
}

/** Returns the name and the value in a `Set-Cookie` header. */
const pairOf = (header: string) => header.split(";", 1)[0] ?? "";

type Call = (
  method: string,
  path: string,
  expected: number,
  headers: Readonly<Record<string, string>>,
  body?: object,
) => Promise<{ readonly body: string; readonly cookies: readonly string[] }>;

/** Returns a client that calls a handler over a new connection in memory for each request. */
function callsOf(handler: Handler): Call {
  const server = createServer(handler);
  return async (method, path, expected, headers, body) => {
    const [ours, theirs] = duplexPair();
    server.emit("connection", Object.assign(theirs, { remoteAddress: "127.0.0.1" }));
    const content = body === undefined ? "" : JSON.stringify(body);
    const fields = { ...headers, host: "localhost", "content-length": content.length, connection: "close" };
    const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
    ours.write(`${method} ${path} HTTP/1.1\r\n${lines.join("")}\r\n${content}`);
    const [head = "", text = ""] = (await ours.setEncoding("latin1").toArray()).join("").split("\r\n\r\n", 2);
    if (!head.startsWith(`HTTP/1.1 ${expected} `)) throw new Error(`${method} ${path}: ${head.split("\r\n", 1)[0]}`);
    return { body: text, cookies: [...head.matchAll(/^set-cookie: (.*)$/gim)].map(([, value]) => value ?? "") };
  };
}
