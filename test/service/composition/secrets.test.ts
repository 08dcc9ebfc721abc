/** The service's own files when they are lost, readable by others, or left behind by a start that was killed. */
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { SessionService } from "../../../gen/auth/v1/session_pb.ts";
import { mountedSecret } from "../../support/mounted-secret.ts";
import { PATIENCE_MS } from "../../support/patience.ts";
import { compiled, PROGRAM } from "../../support/program.ts";
import { request } from "../../support/raw-http.ts";
import { runToExit, type Service, scratch, startService, waitFor } from "../../support/service.ts";
import { admin, bearer, cookie, logIn, message, openAdmin, openPublic } from "../../support/sessions.ts";
import { until } from "../../support/until.ts";

const { refresh } = SessionService.method;
const readiness = async (service: Service) => (await request(service.publicUrl, { path: "/readyz" })).status;

test("a working directory that was removed is reported, in one line", () => {
  const env = { PATH: process.env.PATH, ...compiled(), PORT: "0", ADMIN_PORT: "0" };
  const run = (...args: readonly string[]) => {
    const removed = [`cd "$0" && rmdir "$0" && exec "$@"`, scratch(), process.execPath, PROGRAM];
    return spawnSync("sh", ["-c", ...removed, ...args], { env, encoding: "utf8", timeout: PATIENCE_MS });
  };
  const { status, stderr } = run();
  expect([status, stderr]).toEqual([1, expect.stringMatching(/^DATA_DIR: ENOENT.*\n$/)]);
  const keys = run("keys", "create", "--file", "./below/keys.json");
  expect([keys.status, keys.stderr]).toEqual([1, "key ring ./below/keys.json: cannot be created (ENOENT)\n"]);
});

describe("a key ring that is gone", () => {
  test("is not replaced while sessions exist; restored, they go on", async () => {
    const before = await startService();
    const user = await logIn(before);
    await before.stop();
    const path = join(before.dataDir, "keys.json");
    renameSync(path, `${path}.away`);
    const refused = await runToExit({ DATA_DIR: before.dataDir });
    expect(refused.code).toBe(1);
    expect(refused.stderr).toMatch(
      /^key ring .*keys\.json: the file is gone.*Restore it.*session-service keys create`\n$/,
    );
    renameSync(`${path}.away`, path);
    const after = await before.restart();
    message(await openPublic(after).call(refresh, {}, cookie(user.refreshToken)));
    await after.stop();
  });

  test("is replaced by a start when nobody is logged in", async () => {
    const before = await startService();
    await before.stop();
    rmSync(join(before.dataDir, "keys.json"));
    const after = await before.restart();
    await logIn(after);
    await after.stop();
  });

  test("makes a running service not ready until it is back, which is logged, while refreshes go on", async () => {
    const service = await startService();
    const user = await logIn(service);
    const path = join(service.dataDir, "keys.json");
    renameSync(path, `${path}.away`);
    await until(async () => expect(await readiness(service)).toBe(503));
    expect(service.stderr()).toContain("not ready until it is restored");
    message(await openPublic(service).call(refresh, {}, cookie(user.refreshToken)));
    renameSync(`${path}.away`, path);
    await until(async () => expect(await readiness(service)).toBe(200));
    await waitFor(service, () => service.stderr().includes("is valid again") || undefined);
    await service.stop();
  });
});

test("without its data directory a running service acknowledges nothing, is not ready, and logs what to do", async () => {
  const service = await startService();
  const user = await logIn(service);
  rmSync(service.dataDir, { recursive: true });
  expect(await readiness(service)).toBe(503);
  const caller = openAdmin(service);
  for (const call of [
    caller.call(admin.createSession, { subject: "bob" }, bearer(service.adminToken)),
    caller.call(admin.revokeSession, { sessionId: user.sid }, bearer(service.adminToken)),
  ]) {
    expect(await call).toMatchObject({ code: "E503_UNAVAILABLE" });
  }
  await waitFor(service, () => service.stderr().includes("removed or replaced") || undefined);
  expect(service.stderr()).toContain("from a backup");
  expect((await service.stop()).code).toBe(0);
});

describe("what others can get at is refused with the command that helps", () => {
  test("the data directory", async () => {
    const dataDir = scratch();
    chmodSync(dataDir, 0o755);
    const { code, stderr } = await runToExit({ DATA_DIR: dataDir });
    expect([code, stderr]).toEqual([
      1,
      `DATA_DIR: the directory ${dataDir} has mode 755, which lets others read or change it: chmod 700 ${dataDir}\n`,
    ]);
  });

  test("a data directory of others, such as /var/lib, is left as it is", async () => {
    const dataDir = scratch();
    mkdirSync(join(dataDir, "postgresql"));
    chmodSync(dataDir, 0o755);
    const { code, stderr } = await runToExit({ DATA_DIR: dataDir });
    expect([code, stderr]).toEqual([
      1,
      `DATA_DIR: the directory ${dataDir} has mode 755, which lets others read or change it, and holds other files: name a directory in it\n`,
    ]);
  });

  test("the data directory behind a link", async () => {
    const [dataDir, link] = [scratch(), join(scratch(), "link")];
    symlinkSync(dataDir, link);
    chmodSync(dataDir, 0o770);
    expect((await runToExit({ DATA_DIR: link })).stderr).toContain(`chmod 700 ${link}`);
  });

  test("the admin token", async () => {
    const dataDir = scratch();
    const path = join(dataDir, "admin-token");
    writeFileSync(path, `${"t".repeat(40)}\n`, { mode: 0o644 });
    const { code, stderr } = await runToExit({ DATA_DIR: dataDir });
    expect([code, stderr]).toEqual([
      1,
      `the file ${path} has mode 644, which lets others read or change it: chmod 600 ${path}\n`,
    ]);
  });

  test("a key ring that Kubernetes has mounted with its default mode", async () => {
    const KEYS_FILE = join(mountedSecret(scratch(), { "keys.json": "{}" }), "keys.json");
    const { code, stderr } = await runToExit({ KEYS_FILE });
    expect([code, stderr]).toEqual([1, expect.stringContaining(`${KEYS_FILE}: has mode 644`)]);
    expect(stderr).toContain("`defaultMode: 0400` on the volume and `fsGroup`");
    expect(stderr).not.toContain("chmod");
  });

  test("but a directory that the service does not use is not looked at", async () => {
    const dataDir = scratch();
    chmodSync(dataDir, 0o755);
    const env = { DATA_DIR: dataDir, REDIS_URL: "redis://127.0.0.1:1", ADMIN_TOKENS: "t".repeat(40) };
    expect((await runToExit(env)).stderr).toContain("keys -- create");
  });
});

test("an admin token that was cut short is a fault in one line", async () => {
  const dataDir = scratch();
  writeFileSync(join(dataDir, "admin-token"), "short\n", { mode: 0o600 });
  expect((await runToExit({ DATA_DIR: dataDir })).stderr).toMatch(/^the file .*admin-token holds no token.*\n$/);
});

test("what starts that were killed have left does not stop the next one", async () => {
  const dataDir = join(scratch(), "data");
  mkdirSync(dataDir, { mode: 0o700 });
  for (let pid = 1; pid < 50; pid++) writeFileSync(join(dataDir, `admin-token.${pid}`), "");
  const service = await startService({ DATA_DIR: dataDir });
  expect(readFileSync(join(dataDir, "admin-token"), "utf8").trim()).toBe(service.adminToken);
  expect(readdirSync(dataDir).filter((name) => name.endsWith(".tmp"))).toEqual([]);
  await service.stop();
});
