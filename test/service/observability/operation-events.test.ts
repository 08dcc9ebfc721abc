/** The events of which an operator must be informed. Each test causes the fault in a running service. */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, test } from "vitest";
import { SessionService } from "../../../gen/auth/v1/session_pb.ts";
import { compiled, PROGRAM } from "../../support/program.ts";
import { request } from "../../support/raw-http.ts";
import { startRedis } from "../../support/redis.ts";
import { type Service, scratch, startService, waitFor, withKeys } from "../../support/service.ts";
import { admin, bearer, cookie, logIn, openAdmin, openPublic } from "../../support/sessions.ts";
import { until } from "../../support/until.ts";

const ROOT = join(import.meta.dirname, "../../..");
type Line = Readonly<Record<string, unknown>>;

const lines = (service: Service, event: string): Line[] =>
  service
    .stderr()
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Line)
    .filter((line) => line.event === event);
const recorded = (service: Service, event: string): Promise<Line> => waitFor(service, () => lines(service, event)[0]);

test("a key ring that changes is recorded", async () => {
  const service = await startService();
  const env = { PATH: process.env.PATH, ...compiled(), DATA_DIR: service.dataDir };
  const rotated = spawnSync(process.execPath, [PROGRAM, "keys", "rotate", "--force"], { cwd: ROOT, env });
  expect(rotated.status).toBe(0);
  expect(await recorded(service, "key_ring_changed")).toMatchObject({
    level: "info",
    signing: expect.any(String),
    revoked: [],
  });
  await service.stop();
});

test("a key ring that breaks is recorded", async () => {
  const service = await startService();
  const file = join(service.dataDir, "keys.json");
  const ring = readFileSync(file, "utf8");
  writeFileSync(file, "{");
  expect(await recorded(service, "key_ring_refused")).toMatchObject({ level: "error", fault: expect.any(String) });
  writeFileSync(file, ring);
  expect(await recorded(service, "key_ring_recovered")).toMatchObject({ level: "info" });
  await service.stop();
});

test("a signal is recorded", async () => {
  const service = await startService();
  await service.stop();
  expect(await recorded(service, "stopping")).toMatchObject({ level: "info", signal: "SIGTERM" });
});

test("a low limit of open files is recorded", async () => {
  const command = `ulimit -n 128; exec "${process.execPath}" "${PROGRAM}"`;
  const env = { PATH: process.env.PATH, ...compiled(), PORT: "0", ADMIN_PORT: "0", DATA_DIR: join(scratch(), "data") };
  const child = spawn("sh", ["-c", command], { cwd: ROOT, env, stdio: ["ignore", "pipe", "pipe"] });
  const [line] = (await once(createInterface({ input: child.stderr }), "line")) as [string];
  expect(JSON.parse(line)).toMatchObject({ level: "warn", event: "few_open_files" });
  child.kill("SIGKILL");
  await once(child, "exit");
});

test("a container with little memory is recorded", async () => {
  const container = "data:text/javascript,process.constrainedMemory = () => 512 * 2 ** 20;";
  const service = await startService({ NODE_OPTIONS: `--import="${container}"` });
  expect(await recorded(service, "little_memory")).toMatchObject({ level: "warn", maxConnections: 3_369 });
  await service.stop();
});

test("a store that goes away is recorded", async () => {
  const redis = await startRedis();
  const service = await startService({ DATA_DIR: withKeys(), REDIS_URL: redis.url, ADMIN_TOKENS: "a".repeat(40) });
  expect(await recorded(service, "issuer_default")).toMatchObject({ level: "warn" });
  const user = await logIn(service);
  // Waits until the revocation feed reports `caughtUp`, which means that the feed has read the whole log of revocations from Redis.
  const caller = openAdmin(service);
  await until(async () => {
    const watch = caller.stream(admin.watchRevocations, {}, bearer(service.adminToken));
    for await (const batch of watch) if (batch.caughtUp) return;
  });
  await redis.stop();
  const response = await openPublic(service).call(SessionService.method.refresh, {}, cookie(user.refreshToken));
  expect(response).toMatchObject({ code: "E503_UNAVAILABLE" });
  expect(await recorded(service, "store_unavailable")).toMatchObject({ level: "error", fault: expect.any(String) });
  expect(await recorded(service, "feed_unreadable")).toMatchObject({ level: "error" });
  expect(await recorded(service, "redis")).toMatchObject({ level: expect.stringMatching(/warn|error/) });
  await until(async () => {
    const { body } = await request(service.adminUrl, { path: "/metrics" });
    if (!body.includes('session_log_lines_total{event="store_unavailable",level="error"}'))
      throw new Error("not counted");
  });
  await service.stop();
});
