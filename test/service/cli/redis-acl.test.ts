/** The Redis user that `session-service redis-acl` prints can be loaded unchanged, and the service works with its permissions. */
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { SessionAdminService } from "../../../gen/auth/admin/v1/session_admin_pb.ts";
import { SessionService } from "../../../gen/auth/v1/session_pb.ts";
import { aclRules } from "../../../src/service/store/redis/checks/permissions.ts";
import { startRedis, startRedisCluster } from "../../support/redis.ts";
import { startService, withKeys } from "../../support/service.ts";
import { bearer, cookie, logIn, message, openAdmin, openPublic } from "../../support/sessions.ts";
import { until } from "../../support/until.ts";
import { command, commandHere } from "./command.ts";

const { refresh, logout, listSessions } = SessionService.method;
const ADMIN_TOKENS = "admin".repeat(8);

/** Runs the service on a Redis, and makes the calls that its users make. */
async function serve(REDIS_URL: string): Promise<void> {
  const service = await startService({
    ...{ DATA_DIR: withKeys(), REDIS_URL, ADMIN_TOKENS, ISSUER: "https://auth.example.com" },
    REDIS_COMMAND_TIMEOUT: "5s",
  });
  const { adminUrl: ADMIN_URL } = service;
  const user = await logIn(service);
  const open = openPublic(service);
  message(await open.call(refresh, {}, cookie(user.refreshToken)));
  message(await open.call(listSessions, {}, bearer(user.accessToken)));
  message(await open.call(logout, {}, bearer(user.accessToken)));
  const env = { ADMIN_URL, ADMIN_TOKEN: ADMIN_TOKENS };
  // The feed receives the logout by a message, which a Redis cluster may deliver late.
  await until(async () => expect((await commandHere(["watch", "--once"], { env })).out).toContain(user.sid));
  const admin = openAdmin(service);
  message(await admin.call(SessionAdminService.method.revokeAllSessions, {}, bearer(ADMIN_TOKENS)));
  expect((await service.stop()).code).toBe(0);
  expect(service.stderr()).not.toMatch(/NOPERM|denies/);
}

test("is a line of an ACL file that Redis loads, and under which the service runs", async () => {
  const directory = mkdtempSync(join(tmpdir(), "acl-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const file = join(directory, "users.acl");
  const { code, out, err } = await commandHere(["redis-acl"]);
  expect(code).toBe(0);
  const [, password = ""] = /^password \(printed once\): (\S{43})$/m.exec(err) ?? [];
  expect(err).toContain(`REDIS_URL=redis://session-service:${password}@HOST:PORT\n`);
  expect(out).not.toContain(password);
  expect(err).toContain("\nuser default off ~* &* +@all");
  writeFileSync(file, `user default on nopass ~* &* +@all\n${out}`);
  const redis = await startRedis("--aclfile", file);
  onTestFinished(() => redis.stop());
  await serve(`redis://session-service:${password}@127.0.0.1:${redis.port}`);
  expect(await redis.admin.call("ACL", "SAVE")).toBe("OK");
  expect(readFileSync(file, "utf8")).toContain("user session-service on ");
});

test("is a command for redis-cli, with the password of REDIS_URL, and for a cluster", async () => {
  const cluster = await startRedisCluster();
  onTestFinished(() => cluster.stop());
  const REDIS_URL = cluster.url.replace("//", "//sessions:s%40cret@");
  const { code, out, err } = await commandHere(["redis-acl", "--format", "setuser"], { env: { REDIS_URL } });
  expect({ code, err }).toEqual({ code: 0, err: expect.stringMatching(/\nACL SETUSER default off ~\* &\* \+@all\n$/) });
  expect(err).not.toContain("password");
  expect(out).toMatch(/^ACL SETUSER sessions reset on #[0-9a-f]{64} .*\+cluster\|slots/);
  for (const { admin } of cluster.nodes) {
    const [name = "", ...words] = out.trim().split(" ");
    await admin.call(name, ...words);
  }
  await serve(REDIS_URL);
});

test("has the permissions that docs/tasks/operations.md names, and no others", () => {
  const [, line = ""] = /`ACL SETUSER ([^`]+)`/.exec(readFileSync("docs/tasks/operations.md", "utf8")) ?? [];
  const named = line.split(" ").filter((word) => /^[+~&]/.test(word));
  const given = (clustered: boolean, db: number, waitReplicas: number) =>
    aclRules({ clustered, db, waitReplicas }).filter((word) => /^[+~&]/.test(word));
  expect(given(false, 0, 0).sort()).toEqual(named.toSorted());
  const more = given(true, 1, 1).filter((word) => !named.includes(word));
  expect(more.sort()).toEqual(["+cluster|info", "+cluster|slots", "+select", "+wait"]);
});

test.each([
  [["--user", "default"], "--user must be"],
  [["--user", "a b"], "--user must be"],
  [["--db", "x"], "It must be the number of a database."],
  [["--format", "xml"], "Allowed choices are aclfile, setuser."],
])("refuses %j as wrong usage", async (args, fault) => {
  const { code, out, err } = await commandHere(["redis-acl", ...args]);
  expect([code, out, err]).toEqual([2, "", expect.stringContaining(fault)]);
});

test("reads the password from a file or standard input, never from an argument", async () => {
  const { code, out, err } = await command(["redis-acl", "--password-file", "-"], { input: "pass word\n" });
  expect({ code, err }).toEqual({ code: 0, err: expect.stringMatching(/\nuser default off ~\* &\* \+@all\n$/) });
  expect(out).toContain(` #${createHash("sha256").update("pass word").digest("hex")} `);
  const asServiceReads = await command(["redis-acl", "--password-file", "-"], { input: " pass word \r\n\n" });
  expect(asServiceReads.out).toBe(out);
  expect((await command(["redis-acl", "--password-file", "-"], { input: "\n" })).code).toBe(1);
});

test("prints a URL that the service can read, whatever the name of the user", async () => {
  const { err } = await commandHere(["redis-acl", "--user", "a@b/c:d%20"]);
  expect(err).toContain("\nREDIS_URL=redis://a%40b%2Fc%3Ad%2520:");
});
