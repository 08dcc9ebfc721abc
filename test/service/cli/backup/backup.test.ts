/** Backup and restore of the embedded store, and which sessions are live afterwards. */
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  copyFileSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  watch,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, onTestFinished, test } from "vitest";
import { systemClock } from "../../../../src/service/session/time.ts";
import { createEmbeddedStore } from "../../../../src/service/store/embedded/store.ts";
import { PATIENCE_MS } from "../../../support/patience.ts";
import { PROGRAM } from "../../../support/program.ts";
import { runToExit, type Service, scratch, startService } from "../../../support/service.ts";
import { cookie, type LoggedIn, logIn } from "../../../support/sessions.ts";
import { commandHere } from "../command.ts";

const refreshed = async (service: Service, { refreshToken }: LoggedIn) =>
  (await fetch(`${service.publicUrl}/v1/auth/refresh`, { method: "POST", headers: cookie(refreshToken) })).status;

async function running(DATA_DIR?: string): Promise<Service> {
  const service = await startService(DATA_DIR === undefined ? {} : { DATA_DIR });
  onTestFinished(() => void service.kill("SIGKILL"));
  return service;
}

/**
 * Returns a shell command that runs the program with a limit on file size, 32 blocks of 512 or 1,024 bytes, which is too small for a
 * store.
 */
function withoutRoom(args: readonly string[], DATA_DIR: string) {
  const env = { PATH: process.env.PATH, DATA_DIR };
  const limited = `ulimit -f 32; exec "$0" "$@"`;
  return spawnSync("sh", ["-c", limited, process.execPath, PROGRAM, ...args], { env, encoding: "utf8" });
}

/** Makes a backup while the service runs. Returns it with a session that is live and one that was ended after the backup. */
async function backedUp() {
  const service = await running();
  const { dataDir: DATA_DIR } = service;
  const [kept, ended] = [await logIn(service), await logIn(service)];
  const backup = join(scratch(), "backup");
  const made = await commandHere(["backup", backup], { env: { DATA_DIR } });
  expect(made).toEqual({ code: 0, out: expect.stringMatching(/^backed up to .*: 0\.\d MB\n$/), err: "" });
  const env = { ADMIN_URL: service.adminUrl, ADMIN_TOKEN: service.adminToken };
  await commandHere(["sessions", "end", ended.sid], { env });
  return { service, DATA_DIR, backup, kept, ended };
}

test("a backup of a running service is restored with its sessions, or with none", async () => {
  const { service, backup, kept, ended, DATA_DIR } = await backedUp();
  expect(statSync(backup).mode & 0o777).toBe(0o700);
  expect(readdirSync(backup).sort()).toEqual(["admin-token", "keys.json", "sessions.db"]);
  for (const name of readdirSync(backup)) expect(statSync(join(backup, name)).mode & 0o777).toBe(0o600);

  const open = await commandHere(["restore", backup, "--sessions", "keep", "--force"], { env: { DATA_DIR } });
  expect([open.code, open.err]).toEqual([
    1,
    expect.stringMatching(/^a service has .*sessions\.db open: stop it first\n$/),
  ]);
  await service.stop();

  const other = join(scratch(), "data");
  expect((await commandHere(["restore", backup, "--sessions", "keep"], { env: { DATA_DIR: other } })).code).toBe(0);
  const second = await running(other);
  expect([await refreshed(second, kept), await refreshed(second, ended)]).toEqual([200, 200]);
  await second.stop();

  const before = await commandHere(["restore", backup, "--sessions", "end"], { env: { DATA_DIR } });
  expect([before.code, before.err]).toEqual([1, expect.stringContaining("is there already: --force moves it aside")]);
  const restored = await commandHere(["restore", backup, "--sessions", "end", "--force", "--json"], {
    env: { DATA_DIR },
  });
  expect([restored.code, restored.err]).toEqual([0, ""]);
  const { replaced, sessionsEnded } = JSON.parse(restored.out);
  expect([sessionsEnded, existsSync(join(replaced, "sessions.db"))]).toEqual([true, true]);
  const third = await running(DATA_DIR);
  expect([await refreshed(third, kept), await refreshed(third, ended)]).toEqual([401, 401]);
  expect(await refreshed(third, await logIn(third))).toBe(200);
  await third.stop();
});

test("a restore leaves to the service to record that all sessions have ended", async () => {
  const { service, backup } = await backedUp();
  await service.stop();
  const DATA_DIR = join(scratch(), "data");
  expect((await commandHere(["restore", backup, "--sessions", "end"], { env: { DATA_DIR } })).code).toBe(0);
  const path = join(DATA_DIR, "sessions.db");
  const store = createEmbeddedStore({ path, clock: systemClock, reuseIntervalMs: 0, markerLifeMs: 60_000 });
  onTestFinished(() => store.close());
  const [{ records } = { records: [] }] = await store.dueRecords();
  expect(records.map(({ event }) => event.type)).toEqual(["all_ended"]);
});

test("a backup is made into an empty directory alone, of a store that is there", async () => {
  const { service, backup, DATA_DIR } = await backedUp();
  const again = await commandHere(["backup", backup], { env: { DATA_DIR } });
  expect(again).toEqual({ code: 1, out: "", err: `${backup} is not empty\n` });
  const [system, file] = [scratch(), "passwd"];
  chmodSync(system, 0o755);
  writeFileSync(join(system, file), "");
  expect((await commandHere(["backup", system], { env: { DATA_DIR } })).code).toBe(1);
  expect([statSync(system).mode & 0o777, readdirSync(system)]).toEqual([0o755, [file]]);
  await service.stop();
  const none = await commandHere(["backup", join(scratch(), "b")], { env: { DATA_DIR: scratch() } });
  expect([none.code, none.err]).toEqual([1, expect.stringMatching(/^there is no store at /)]);
  const redis = await commandHere(["backup", join(scratch(), "b")], { env: { REDIS_URL: "redis://127.0.0.1:1" } });
  expect([redis.code, redis.err]).toEqual([1, expect.stringMatching(/^REDIS_URL is set: /)]);
});

test("a key ring that the service would not read is not backed up, and no part of a backup is left", async () => {
  const service = await running();
  const { dataDir: DATA_DIR } = service;
  await service.stop();
  writeFileSync(join(DATA_DIR, "keys.json"), "{}");
  const backup = scratch();
  const { code, err } = await commandHere(["backup", backup], { env: { DATA_DIR } });
  expect([code, err]).toEqual([1, expect.stringMatching(/^key ring .*keys\.json/)]);
  expect(readdirSync(backup)).toEqual([]);
});

test("what is no whole backup is not restored, and what is there stays", async () => {
  const { service, backup, DATA_DIR } = await backedUp();
  await service.stop();
  const restoring = (from: string) =>
    commandHere(["restore", from, "--sessions", "keep", "--force"], { env: { DATA_DIR } });
  const before = readdirSync(DATA_DIR).sort();
  expect((await restoring(scratch())).err).toMatch(/^this is no whole backup: .*sessions\.db is not there\n$/);
  const broken = scratch();
  writeFileSync(join(broken, "sessions.db"), "not a database ".repeat(1000));
  expect((await restoring(broken)).err).toMatch(/^this is no whole backup: .*sessions\.db cannot be read/);
  const torn = join(scratch(), "torn");
  mkdirSync(torn);
  const whole = readFileSync(join(backup, "sessions.db"));
  writeFileSync(join(torn, "sessions.db"), whole.subarray(0, whole.length / 2));
  expect((await restoring(torn)).err).toMatch(/^this is no whole backup/);
  writeFileSync(join(torn, "sessions.db"), whole);
  expect((await restoring(torn)).err).toMatch(/^this is no whole backup: .*keys\.json is not there\n$/);
  expect(readdirSync(DATA_DIR).sort()).toEqual(before);
  expect((await commandHere(["restore", backup], { env: { DATA_DIR } })).code).toBe(2);
});

/** Runs the program until it is about to make a system call on a file, where it is killed. */
function killedAt(call: "openat" | "rename", path: string, args: readonly string[], DATA_DIR: string) {
  const options = ["-f", "-qqq", "-o", "/dev/null", "-P", path, "-e", `inject=${call}:signal=SIGKILL`];
  const env = { PATH: process.env.PATH, DATA_DIR };
  const { signal, stderr } = spawnSync("strace", [...options, process.execPath, PROGRAM, ...args], { env });
  expect([signal, String(stderr)]).toEqual(["SIGKILL", ""]);
}

test("a backup that was killed is not restored, and what it lacks is named", async () => {
  const { dataDir: DATA_DIR } = await running();
  for (const [path, lacks] of [
    ["BACKUP/sessions.db", "sessions.db, keys.json, admin-token"],
    ["DATA_DIR/keys.json", "keys.json, admin-token"],
    ["DATA_DIR/admin-token", "admin-token"],
  ] as const) {
    const backup = join(scratch(), "backup");
    const file = path.replace("BACKUP", backup).replace("DATA_DIR", DATA_DIR);
    killedAt("openat", file, ["backup", backup], DATA_DIR);
    const env = { DATA_DIR: join(scratch(), "data") };
    const restored = await commandHere(["restore", backup, "--sessions", "end"], { env });
    const err = `this is no whole backup: it was interrupted, and lacks ${lacks}\n`;
    expect(restored, lacks).toEqual({ code: 1, out: "", err });
    expect(existsSync(env.DATA_DIR)).toBe(false);
    const again = await commandHere(["backup", backup], { env: { DATA_DIR } });
    expect(again.err).toBe(`${backup} has a backup that was interrupted: remove it\n`);
  }
});

test("a service does not begin with no sessions after a restore that was killed", async () => {
  const { service, DATA_DIR, backup, kept } = await backedUp();
  await service.stop();
  const args = ["restore", backup, "--sessions", "keep", "--force"];
  killedAt("rename", join(DATA_DIR, "keys.json.restoring"), args, DATA_DIR);
  expect(readdirSync(DATA_DIR)).toContain("sessions.db.restoring");
  const { code, stderr } = await runToExit({ DATA_DIR });
  expect([code, stderr]).toEqual([1, expect.stringContaining("a restore was interrupted: run it again, or remove ")]);
  const examined = await commandHere(["doctor"], { env: { DATA_DIR } });
  expect(examined.out).toMatch(/sessions\.db is damaged: its restore was interrupted/);
  expect(await commandHere(args, { env: { DATA_DIR } })).toMatchObject({ code: 0, err: expect.any(String) });
  expect(await refreshed(await running(DATA_DIR), kept)).toBe(200);
});

test("a copy of the directory of a service that was killed is restored with its last writes", async () => {
  const service = await running();
  const [kept, ended] = [await logIn(service), await logIn(service)];
  await commandHere(["sessions", "end", ended.sid], {
    env: { ADMIN_URL: service.adminUrl, ADMIN_TOKEN: service.adminToken },
  });
  await service.kill9();
  const copy = join(scratch(), "copy");
  cpSync(service.dataDir, copy, { recursive: true });
  expect(statSync(join(copy, "sessions.db-wal")).size).toBeGreaterThan(0);
  const DATA_DIR = join(scratch(), "data");
  expect((await commandHere(["restore", copy, "--sessions", "keep"], { env: { DATA_DIR } })).code).toBe(0);
  const restored = await running(DATA_DIR);
  expect([await refreshed(restored, kept), await refreshed(restored, ended)]).toEqual([200, 401]);
});

test("a backup that finds no room leaves nothing in the way of the next one", async () => {
  const { dataDir: DATA_DIR } = await running();
  const backup = join(scratch(), "backup");
  const { status, stderr } = withoutRoom(["backup", backup], DATA_DIR);
  expect([status, stderr]).toEqual([1, expect.stringMatching(/^.*sessions\.db cannot be copied: .*\n$/)]);
  expect((await commandHere(["backup", backup], { env: { DATA_DIR } })).code).toBe(0);
});

test("what a removed working directory cannot hold is reported, in one line", async () => {
  const { service, backup, DATA_DIR } = await backedUp();
  await service.stop();
  const run = (env: { readonly DATA_DIR: string }, ...args: readonly string[]) => {
    const removed = [`cd "$0" && rmdir "$0" && exec "$@"`, scratch(), process.execPath, PROGRAM, ...args];
    const options = { env: { PATH: process.env.PATH, ...env }, encoding: "utf8", timeout: PATIENCE_MS } as const;
    return spawnSync("sh", ["-c", ...removed], options).stderr;
  };
  expect(run({ DATA_DIR }, "backup", "a/b")).toBe("a/b cannot be used (ENOENT)\n");
  expect(run({ DATA_DIR: "a/b" }, "restore", backup, "--sessions", "end")).toBe("a/b cannot be used (ENOENT)\n");
});

test("a restore that finds no room leaves what was there in place", async () => {
  const { service, DATA_DIR, backup } = await backedUp();
  await service.stop();
  const before = readdirSync(DATA_DIR).sort();
  const { status, stderr } = withoutRoom(["restore", backup, "--sessions", "end", "--force"], DATA_DIR);
  expect([status, stderr]).toEqual([1, expect.stringMatching(/^.*sessions\.db cannot be copied: .*\n$/)]);
  expect(readdirSync(DATA_DIR).sort()).toEqual(before);
});

test.each([
  [
    "a trigger that keeps sessions from ending",
    "CREATE TRIGGER stay BEFORE DELETE ON sessions BEGIN SELECT RAISE(IGNORE); END",
    "has a trigger stay that this service did not make",
  ],
  ["a view", "CREATE VIEW live AS SELECT * FROM sessions", "has a view live that this service did not make"],
  ["a table of somebody else", "CREATE TABLE mine (a)", "has a table mine that this service did not make"],
  ["one index less", "DROP INDEX log_by_sid", "lacks the index log_by_sid"],
  ["the version of another", "PRAGMA user_version = 99", "was made by a newer version of this service (schema 99)"],
])("a backup with %s is not restored, and what is there stays", async (_, statement, fault) => {
  const { service, backup, DATA_DIR } = await backedUp();
  await service.stop();
  const before = readdirSync(DATA_DIR).sort();
  const db = new DatabaseSync(join(backup, "sessions.db"));
  db.exec(statement);
  db.close();
  const { code, err } = await commandHere(["restore", backup, "--sessions", "end", "--force"], { env: { DATA_DIR } });
  expect([code, err]).toEqual([1, `this is no backup of this service: ${join(backup, "sessions.db")} ${fault}\n`]);
  expect(readdirSync(DATA_DIR).sort()).toEqual(before);
});

test("a service does not start on a store with a trigger", async () => {
  const { dataDir: DATA_DIR, stop } = await running();
  await stop();
  const db = new DatabaseSync(join(DATA_DIR, "sessions.db"));
  db.exec("CREATE TRIGGER stay BEFORE DELETE ON sessions BEGIN SELECT RAISE(IGNORE); END");
  db.close();
  const { code, stderr } = await runToExit({ DATA_DIR });
  expect([code, stderr]).toEqual([1, expect.stringContaining("it has a trigger that this service did not make: stay")]);
});

// Only root can give a directory to another user. `npm test` as another user leaves these tests out; CI runs as root.
describe.runIf(process.getuid?.() === 0)("as root, where another user", () => {
  const OTHER = 12_345;

  test("puts a link in place of a copy, the file that it leads to stays root's", async () => {
    const { service, backup, DATA_DIR } = await backedUp();
    await service.stop();
    rmSync(join(backup, "admin-token"));
    chownSync(DATA_DIR, OTHER, OTHER);
    const rootsFile = join(scratch(), "shadow");
    writeFileSync(rootsFile, "");
    const copy = join(DATA_DIR, "admin-token.restoring");
    const watcher = watch(DATA_DIR, (_, name) => {
      if (name === "sessions.db.restoring" && !existsSync(copy)) symlinkSync(rootsFile, copy);
    });
    onTestFinished(() => watcher.close());
    await commandHere(["restore", backup, "--sessions", "end", "--force"], { env: { DATA_DIR } });
    const link = lstatSync(join(DATA_DIR, "admin-token"));
    expect([link.isSymbolicLink(), link.uid, statSync(rootsFile).uid]).toEqual([true, OTHER, 0]);
  });

  const refused = (path: string) =>
    `${path} belongs to another user (uid ${OTHER}; the service runs as 0): chown 0 ${path}\n`;

  test("owns the directory, nothing is backed up into it", async () => {
    const { dataDir: DATA_DIR } = await running();
    const directory = scratch();
    chownSync(directory, OTHER, OTHER);
    const { code, err } = await commandHere(["backup", directory], { env: { DATA_DIR } });
    expect([code, err, readdirSync(directory)]).toEqual([1, refused(directory), []]);
  });

  test.each(["", "sessions.db", "keys.json", "admin-token"])(
    "owns %j of a backup, it is not restored",
    async (name) => {
      const { service, backup, DATA_DIR } = await backedUp();
      await service.stop();
      const path = join(backup, name).replace(/\/$/, "");
      chownSync(path, OTHER, OTHER);
      const restoring = () => commandHere(["restore", backup, "--sessions", "end", "--force"], { env: { DATA_DIR } });
      const { code, err } = await restoring();
      expect([code, err]).toEqual([1, refused(path)]);
      chownSync(DATA_DIR, OTHER, OTHER); // The directory belongs to the user of the service.
      rmSync(join(DATA_DIR, "admin-token")); // One that is there stays.
      expect((await restoring()).code).toBe(0);
      const owners = ["sessions.db", "keys.json", "admin-token"].map((file) => statSync(join(DATA_DIR, file)).uid);
      expect(owners).toEqual([OTHER, OTHER, OTHER]);
    },
  );
});

test("a backup that others can change is not restored", async () => {
  const { service, backup, DATA_DIR } = await backedUp();
  await service.stop();
  chmodSync(join(backup, "sessions.db"), 0o660);
  const { code, err } = await commandHere(["restore", backup, "--sessions", "end", "--force"], { env: { DATA_DIR } });
  expect([code, err]).toEqual([1, expect.stringContaining("has mode 660, which lets others change it: chmod 600 ")]);
});

test("a key that was revoked since the backup is revoked again by its restore, and the others go on", async () => {
  const { service, backup, DATA_DIR } = await backedUp();
  await service.stop();
  const env = { DATA_DIR };
  const { keys } = JSON.parse((await commandHere(["keys", "list", "--json"], { env })).out);
  const kids: string[] = keys.map(({ kid }: { kid: string }) => kid);
  const [signing = "", successor, mac] = kids;
  await commandHere(["keys", "revoke", signing], { env });
  const restored = await commandHere(["restore", backup, "--sessions", "keep", "--force"], { env });
  expect([restored.code, restored.err]).toEqual([0, expect.stringContaining(`are revoked again: ${signing}\n`)]);
  const after = JSON.parse((await commandHere(["keys", "list", "--json"], { env })).out).keys;
  const states = after.map(({ kid, state }: { kid: string; state: string }) => [kid, state]);
  expect(states).toEqual(
    expect.arrayContaining([
      [signing, "revoked"],
      [successor, "signing"],
      [mac, "signing"],
    ]),
  );
  await (await service.restart()).stop();
});

test("an admin token that was replaced since the backup stays replaced", async () => {
  const { service, backup, DATA_DIR } = await backedUp();
  await service.stop();
  const path = join(DATA_DIR, "admin-token");
  const [leaked, token] = [readFileSync(path, "utf8"), "another".repeat(6)];
  writeFileSync(path, token);
  const { code, err } = await commandHere(["restore", backup, "--sessions", "keep", "--force"], { env: { DATA_DIR } });
  expect([code, err]).toEqual([
    0,
    expect.stringContaining("the admin token stays as it was; that of the backup is in"),
  ]);
  expect(err).not.toContain(leaked.trim());
  expect(readFileSync(path, "utf8")).toBe(token);
});

test("a ring that cannot say which keys were revoked since the backup is named by its restore", async () => {
  const { service, backup, DATA_DIR } = await backedUp();
  await service.stop();
  const ring = join(DATA_DIR, "keys.json");
  writeFileSync(ring, "{");
  const { code, err } = await commandHere(["restore", backup, "--sessions", "keep", "--force"], { env: { DATA_DIR } });
  expect([code, err.split("\n")[0]]).toEqual([
    0,
    expect.stringMatching(/^key ring .*keys\.json: .*; revoke the keys again that were revoked since the backup$/),
  ]);
});

test("a store is restored also where the key ring is on another file system", async () => {
  const { service, DATA_DIR, backup, kept } = await backedUp();
  await service.stop();
  const elsewhere = mkdtempSync(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "session-service-"));
  onTestFinished(() => rmSync(elsewhere, { recursive: true }));
  const KEYS_FILE = join(elsewhere, "keys.json");
  copyFileSync(join(DATA_DIR, "keys.json"), KEYS_FILE);
  const args = ["restore", backup, "--sessions", "keep", "--force", "--json"];
  const { code, out, err } = await commandHere(args, { env: { DATA_DIR, KEYS_FILE } });
  expect([code, err]).toEqual([0, ""]);
  expect(readdirSync(JSON.parse(out).replaced).sort()).toEqual(["keys.json", "sessions.db"]);
  const restored = await running(DATA_DIR);
  expect(await refreshed(restored, kept)).toBe(200);
});
