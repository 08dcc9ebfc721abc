/** The rehearsal, which runs the code of the first requests once before the service is ready, has no visible effect. */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { IncomingMessage } from "node:http";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readConfig } from "../../../src/service/config/config.ts";
import type { Logger } from "../../../src/service/observability/logger.ts";
import { rehearse } from "../../../src/service/server/rehearsal.ts";
import { start } from "../../../src/service/server/start.ts";
import { type KeyRing, loadOrCreateKeyRing } from "../../../src/service/tokens/key-ring.ts";
import { systemEntropy } from "../../../src/service/tokens/random.ts";
import { scratch, startService } from "../../support/service.ts";

const ADMIN = "/auth.admin.v1.SessionAdminService";
const REFRESH = "/v1/auth/refresh";
/**
 * The requests that the service sends to itself before it is ready (the rehearsal): a login, two refreshes, the calls of a page and of an
 * internal service, a logout, and a refresh that is refused because of the logout.
 */
const STEPS = [
  ...[`${ADMIN}/CreateSession`, REFRESH, REFRESH, "/v1/auth/sessions", `${ADMIN}/IntrospectToken`],
  ...[`${ADMIN}/ListSessions`, `${ADMIN}/GetSession`, "/v1/auth/logout", REFRESH],
];

function recordingLog() {
  const faults: unknown[] = [];
  const ignore = () => {};
  const log = {
    error: (fault: unknown) => faults.push(fault),
    fatal: ignore,
    warn: ignore,
    info: ignore,
    debug: ignore,
  };
  return { faults, log: { ...log, isLevelEnabled: () => false } as unknown as Logger };
}

/** Calls `note` with the path of each request to which this process has responded. */
function noteRequests(note: (path: string) => void): Disposable {
  const listen = (message: unknown) => note((message as { readonly request: IncomingMessage }).request.url ?? "");
  subscribe("http.server.response.finish", listen);
  return { [Symbol.dispose]: () => void unsubscribe("http.server.response.finish", listen) };
}

const ringOf = (env: Record<string, string>, directory = scratch()) =>
  loadOrCreateKeyRing(join(directory, "keys.json"), {
    alg: readConfig({ DATA_DIR: directory, ...env }).signingAlgorithm,
    now: Date.now(),
    hasSessions: () => false,
  });

async function rehearsed(env: Record<string, string>, ring?: KeyRing) {
  const { faults, log } = recordingLog();
  const paths: string[] = [];
  using _ = noteRequests((path) => paths.push(path));
  await rehearse({
    config: readConfig({ DATA_DIR: scratch(), ...env }),
    ring: ring ?? (await ringOf(env)),
    entropy: systemEntropy(),
    log,
  });
  return { faults, paths };
}

test.each<[what: string, env: Record<string, string>]>([
  ["nothing", {}],
  [
    "limits that it would exceed",
    { RATE_LIMIT_CREATE: "1/1h", RATE_LIMIT_REFRESH: "1/1h", RATE_LIMIT_FAILURES: "1/1h" },
  ],
  ["overload control that accepts little", { OVERLOAD_MAX_WAITING: "1", OVERLOAD_MAX_LOOP_DELAY: "1ms" }],
  ["one session per subject", { MAX_SESSIONS_PER_SUBJECT: "1" }],
  ["no reuse interval", { REUSE_INTERVAL: "0" }],
  ["device binding", { DEVICE_BINDING: "on", TRUST_PROXY: "1" }],
  ["EdDSA", { SIGNING_ALGORITHM: "EdDSA" }],
  ["RS256", { SIGNING_ALGORITHM: "RS256" }],
  ["a cookie for https", { COOKIE_NAME: "__Host-rt", COOKIE_SAMESITE: "None", COOKIE_SECURE: "true" }],
  ["a proxy", { TRUST_PROXY: "1", ALLOWED_ORIGINS: "https://a.example" }],
  ["audiences", { AUDIENCE: "https://a.example,https://b.example", ISSUER: "https://auth.example" }],
  ["no pages", { CONSOLE: "off", METRICS_AUTH: "true", EVENT_RETENTION: "0" }],
])("every step succeeds with %s configured", async (_, env) => {
  const { faults, paths } = await rehearsed(env);
  expect(faults).toEqual([]);
  expect(paths).toEqual(STEPS);
});

test("a rehearsal that fails is logged, and ends no start", async () => {
  const ring = await ringOf({});
  const broken: KeyRing = Object.create(ring, { current: { value: undefined } });
  const { faults } = await rehearsed({}, broken);
  expect(faults).toEqual([expect.objectContaining({ event: "bug", err: expect.any(Error) })]);
});

test("a start rehearses, and is reported after that", async () => {
  const steps: string[] = [];
  using _ = noteRequests((path) => steps.push(path));
  const config = readConfig({ DATA_DIR: join(scratch(), "data"), PORT: "0", ADMIN_PORT: "0" });
  const { log } = recordingLog();
  const service = await start(config, {
    log,
    out: (text) => steps.push(text.includes('"event":"ready"') ? "ready" : "quickstart"),
  });
  await service.stop("now");
  expect(steps).toEqual([...STEPS, "/healthz", "/healthz", "ready", "quickstart"]);
});

test("nothing of it is counted, kept or logged", async () => {
  const service = await startService();
  const headers = { authorization: `Bearer ${service.adminToken}`, "content-type": "application/json" };
  const ask = (rpc: string, body: object) =>
    fetch(`${service.adminUrl}/auth.admin.v1.SessionAdminService/${rpc}`, {
      method: "POST",
      headers,
      body: JSON.stringify(body),
    });
  const metrics = await (await fetch(`${service.adminUrl}/metrics`)).text();
  expect(await (await ask("ListSessions", {})).json()).toEqual({ sessions: [], nextPageToken: "" });
  expect(await (await ask("ListSessionEvents", { subject: "rehearsal" })).json()).toMatchObject({ events: [] });
  await service.stop();
  const counted = metrics.split("\n").filter((line) => /^session_rpc_duration_seconds_count/.test(line));
  expect(counted.filter((line) => !line.endsWith(" 0"))).toEqual([]);
  expect(metrics).not.toMatch(/^session_events_total.* [1-9]/m);
  expect(service.stderr()).not.toMatch(/rehearsal|session_created|"bug"/);
});
