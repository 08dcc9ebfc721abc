/** The files of deploy/monitoring, used by a real Prometheus that scrapes the real service under load. */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parse } from "yaml";
import { SignalsAdminService, SubscriptionKind } from "../../../../gen/auth/admin/v1/signals_admin_pb.ts";
import { SessionService } from "../../../../gen/auth/v1/session_pb.ts";
import { selfSigned } from "../../../support/certificate.ts";
import type { Caller } from "../../../support/clients.ts";
import { onExit } from "../../../support/on-exit.ts";
import { PATIENCE_MS } from "../../../support/patience.ts";
import { request } from "../../../support/raw-http.ts";
import { freePort, type RedisServer, startRedis } from "../../../support/redis.ts";
import { type Service, scratch, startService, withKeys } from "../../../support/service.ts";
import { admin, bearer, cookie, logIn, message, openAdmin, openPublic, successor } from "../../../support/sessions.ts";
import { until } from "../../../support/until.ts";

const run = promisify(execFile);
const FILES = join(import.meta.dirname, "../../../../deploy/monitoring");
const alerts = readFileSync(join(FILES, "alerts.yml"), "utf8");

type Panel = {
  readonly title: string;
  readonly description?: string;
  readonly targets?: readonly { readonly expr: string }[];
};
const { panels } = JSON.parse(readFileSync(join(FILES, "dashboard.json"), "utf8")) as { panels: readonly Panel[] };
type Rule = { readonly alert: string; readonly expr: string; readonly annotations: { readonly description: string } };
const rules = (parse(alerts) as { groups: { rules: Rule[] }[] }).groups.flatMap((group) => group.rules);

/** The queries of the dashboard, with their variables replaced as Grafana does. */
const queries = panels.flatMap(({ title, targets = [] }) =>
  targets.map(({ expr }) => [title, expr.replaceAll("$__rate_interval", "15s").replaceAll("$job", ".*")] as const),
);

const { refresh } = SessionService.method;
const SOCKETS_PER_ADDRESS = 30;

let redis: RedisServer;
let service: Service;
/** An instance that serves a certificate itself. */
let secure: Service;
let ca: Buffer;
let prometheus: string;
let stopPrometheus: () => Promise<unknown>;
let watching: AbortController;
beforeAll(async () => {
  redis = await startRedis();
  service = await startService({
    REDIS_URL: redis.url,
    DATA_DIR: withKeys(),
    ADMIN_TOKENS: "monitoring".repeat(4),
    // Without a reuse interval, presenting a token a second time counts as reuse.
    REUSE_INTERVAL: "0",
    RATE_LIMIT_REFRESH: "5/1h",
    MAX_CONNECTIONS_PER_ADDRESS: String(SOCKETS_PER_ADDRESS),
    REDIS_COMMAND_TIMEOUT: "5s",
    ...{ SIGNALS: "on", SIGNALS_ALLOW_PRIVATE: "on" },
    // An application that cannot be reached: no old session can be continued.
    ...{ MIGRATE_COOKIES: "connect.sid", MIGRATE_URL: `http://127.0.0.1:${await freePort()}/` },
  });
  const directory = scratch();
  const { cert, key } = selfSigned();
  const [TLS_CERT_FILE, TLS_KEY_FILE] = [join(directory, "cert.pem"), join(directory, "key.pem")];
  writeFileSync(TLS_CERT_FILE, cert);
  writeFileSync(TLS_KEY_FILE, key);
  ca = Buffer.from(cert);
  secure = await startService({ TLS_CERT_FILE, TLS_KEY_FILE });
  const port = await freePort();
  const targetsOf = ({ adminUrl }: Service) => [{ targets: [new URL(adminUrl).host] }];
  writeFileSync(
    join(directory, "prometheus.json"),
    JSON.stringify({
      global: { scrape_interval: "1s", evaluation_interval: "1s" },
      rule_files: [join(FILES, "alerts.yml")],
      scrape_configs: [
        { job_name: "session-service", static_configs: targetsOf(service) },
        {
          job_name: "session-service-tls",
          scheme: "https",
          tls_config: { ca_file: TLS_CERT_FILE },
          static_configs: targetsOf(secure),
        },
      ],
    }),
  );
  const child = spawn(
    "prometheus",
    [
      `--config.file=${join(directory, "prometheus.json")}`,
      `--storage.tsdb.path=${join(directory, "data")}`,
      `--web.listen-address=127.0.0.1:${port}`,
      "--log.level=error",
    ],
    { stdio: "inherit" },
  );
  onExit(() => void child.kill("SIGKILL"));
  const exited = once(child, "exit");
  stopPrometheus = () => {
    child.kill("SIGKILL");
    return exited;
  };
  prometheus = `http://127.0.0.1:${port}`;
  await until(async () => expect((await fetch(`${prometheus}/-/ready`)).status).toBe(200));
});
afterAll(async () => {
  watching.abort();
  await stopPrometheus();
  await service.stop();
  await secure.stop();
  await redis.stop();
});

/** Causes every event that a panel displays at least once. */
async function causeAll(publicApi: Caller): Promise<void> {
  const user = await logIn(service);
  const next = successor(await publicApi.call(refresh, {}, cookie(user.refreshToken)));
  await publicApi.call(refresh, {}, cookie(next ?? ""));
  await publicApi.call(refresh, {}, cookie(user.refreshToken)); // Presenting the old token is reuse, which ends the session.
  const busy = await logIn(service);
  // Seven refreshes exceed the limit of the session.
  for (let at = 0; at < 7; at++) await publicApi.call(refresh, {}, cookie(busy.refreshToken));
  // Fifteen malformed tokens cause more log lines of one kind than the log accepts in a second.
  for (let at = 0; at < 15; at++) await publicApi.call(refresh, {}, cookie("malformed"));
  await publicApi.call(refresh, {}, { ...cookie(user.refreshToken), "sec-fetch-site": "cross-site" });
  await publicApi.call(refresh, {}, { cookie: "connect.sid=old" });
  await flood();
}

/** Opens more connections than an address may have. Resolves when the listener has closed all of them. */
async function flood(): Promise<void> {
  const port = Number(new URL(service.publicUrl).port);
  const sockets = Array.from({ length: SOCKETS_PER_ADDRESS + 5 }, () => connect(port, "127.0.0.1"));
  await Promise.all(
    sockets.map(
      (socket) => new Promise<void>((resolve) => void socket.once("connect", resolve).once("error", resolve)),
    ),
  );
  for (const socket of sockets) socket.destroy();
  await until(async () => {
    const { body } = await request(service.adminUrl, { path: "/metrics" });
    const open = /^session_open_connections\{listener="public"\} (\d+)$/m.exec(body)?.[1];
    expect(Number(open)).toBeLessThan(SOCKETS_PER_ADDRESS / 2);
  });
}

async function resultOf(query: string): Promise<readonly number[]> {
  const response = await fetch(`${prometheus}/api/v1/query?${new URLSearchParams({ query })}`);
  const { status, error, data } = (await response.json()) as {
    status: string;
    error?: string;
    data?: { result: { value: [number, string] }[] };
  };
  if (status !== "success" || data === undefined) throw new Error(`${query}: ${error}`);
  return data.result.map(({ value: [, value] }) => Number(value)).filter((value) => !Number.isNaN(value));
}

test("every query of the dashboard shows data, and every rule is evaluated", async () => {
  watching = new AbortController();
  const adminApi = openAdmin(service);
  const watch = adminApi.stream(admin.watchRevocations, {}, bearer(service.adminToken), watching.signal);
  await watch[Symbol.asyncIterator]().next();
  // A receiver that cannot be reached: its signals wait.
  const receiver = { kind: SubscriptionKind.WEBHOOK, endpoint: `http://127.0.0.1:${await freePort()}/signals` };
  message(await adminApi.call(SignalsAdminService.method.createSubscription, receiver, bearer(service.adminToken)));
  const publicApi = openPublic(service);
  const without = new Map(queries.map(([title, query]) => [query, title]));
  const deadline = performance.now() + PATIENCE_MS;
  while (without.size > 0 && performance.now() < deadline) {
    await causeAll(publicApi);
    for (const query of without.keys()) if ((await resultOf(query)).length > 0) without.delete(query);
  }
  publicApi.close();
  expect([...without]).toEqual([]);
  const { data } = (await (await fetch(`${prometheus}/api/v1/rules`)).json()) as {
    data: { groups: { rules: { name: string; health: string }[] }[] };
  };
  const evaluated = data.groups.flatMap((group) => group.rules);
  expect(evaluated.map(({ name, health }) => [name, health])).toEqual(rules.map(({ alert }) => [alert, "ok"]));
  adminApi.close();
});

test("every panel says what it shows, in at most 25 words", () => {
  const charts = panels.filter(({ targets }) => targets !== undefined);
  expect(charts.length).toBeGreaterThan(20);
  const words = charts.map(({ title, description = "" }) => [title, description.split(" ").length] as const);
  expect(words.filter(([, count]) => count < 4 || count > 25)).toEqual([]);
});

test("every metric that the dashboard or a rule names is exposed", async () => {
  const plain = await request(service.adminUrl, { path: "/metrics" });
  const overTls = await request(secure.adminUrl, { path: "/metrics", ca });
  const exposed = new Set([...`${plain.body}${overTls.body}`.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name));
  const named = [...queries.map(([, query]) => query), ...rules.map(({ expr }) => expr)].flatMap(
    (expr) => expr.match(/\b(?:session|nodejs|process)_\w+/g) ?? [],
  );
  const unknown = named.filter(
    (name) => !exposed.has(name) && !exposed.has(name.replace(/_(?:bucket|count|sum)$/, "")),
  );
  expect(named.length).toBeGreaterThan(40);
  expect(unknown).toEqual([]);
});

test("promtool accepts the rules, and each fires when it should and not before", async () => {
  expect((await run("promtool", ["check", "rules", join(FILES, "alerts.yml")])).stdout).toContain("SUCCESS");
  const { stdout } = await run("promtool", ["test", "rules", join(FILES, "alerts.test.yml")]);
  expect(stdout).toContain("SUCCESS");
  const tested = parse(readFileSync(join(FILES, "alerts.test.yml"), "utf8")) as { tests: { name: string }[] };
  expect(tested.tests.map(({ name }) => name)).toEqual(rules.map(({ alert }) => alert));
});

test("each alert about signals has a line in the documentation of its incident", () => {
  const page = readFileSync(new URL("../../../../docs/tasks/incidents.md", import.meta.url), "utf8");
  const [, incident = ""] = /\n## Signals do not arrive\n(.*?)\n## /s.exec(page) ?? [];
  const named = [...incident.matchAll(/^\| `(SessionSignals\w+)` \|/gm)].map(([, name]) => name);
  expect(named).toEqual(rules.map(({ alert }) => alert).filter((name) => name.startsWith("SessionSignals")));
});

test("the incidents that alerts name are in the documentation", () => {
  const page = readFileSync(new URL("../../../../docs/tasks/incidents.md", import.meta.url), "utf8");
  for (const { annotations } of rules) {
    for (const [, incident] of annotations.description.matchAll(/[Ii]ncident "([^"]+)"/g)) {
      expect(page).toContain(`## ${incident}\n`);
    }
  }
});
