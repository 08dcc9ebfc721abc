/** The commands of docs/tasks/backup.md, pasted into a shell, for both stores. */
import { spawnSync } from "node:child_process";
import { cpSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { freePort } from "../../support/free-port.ts";
import { PROGRAM } from "../../support/program.ts";
import { RedisServer } from "../../support/redis.ts";
import { type Service, scratch, startService, withKeys } from "../../support/service.ts";

const PAGE = readFileSync(new URL("../../../docs/tasks/backup.md", import.meta.url), "utf8");
/** A directory with the command of the package. */
const BIN = scratch();
writeFileSync(join(BIN, "session-service"), `#!/bin/sh\nexec "${process.execPath}" "${PROGRAM}" "$@"\n`, {
  mode: 0o755,
});

/** Returns the shell commands below a heading, block by block. */
function commandsBelow(heading: string): readonly string[] {
  const section = PAGE.split(/^#{1,3} /m).find((part) => part.startsWith(`${heading}\n`)) ?? "";
  return [...section.matchAll(/^```sh\n(.*?)^```/gms)].map(([, commands = ""]) => commands);
}
const [REVOKE_ALL = ""] = commandsBelow("Back up and restore");

function paste(commands: string, env: Readonly<Record<string, string>>): void {
  const PATH = [BIN, process.env.PATH].join(":");
  const shell = spawnSync("sh", ["-e"], { input: commands, encoding: "utf8", cwd: scratch(), env: { PATH, ...env } });
  expect(shell.status, shell.stderr).toBe(0);
}

async function call(url: string, headers: Record<string, string>, body = "{}") {
  const method = url.endsWith("/logout") ? "DELETE" : "POST";
  const response = await fetch(url, { method, headers: { "content-type": "application/json", ...headers }, body });
  return { status: response.status, body: await response.text(), cookies: response.headers.getSetCookie() };
}

async function logIn({ adminUrl, adminToken }: Service, subject: string) {
  const headers = { authorization: `Bearer ${adminToken}` };
  const { body } = await call(
    `${adminUrl}/auth.admin.v1.SessionAdminService/CreateSession`,
    headers,
    JSON.stringify({ subject }),
  );
  return JSON.parse(body) as { refreshToken: string; accessToken: string };
}

async function refresh({ publicUrl }: Service, token: string) {
  const { status, cookies } = await call(`${publicUrl}/v1/auth/refresh`, { cookie: `refresh_token=${token}` });
  return { status, next: /^refresh_token=([^;]+)/.exec(cookies[0] ?? "")?.[1] ?? token };
}

/** Checks the contents of a restored store, and the effect of `RevokeAllSessions` on it. */
async function expectRestored(
  service: Service,
  { loggedOut, newer }: { readonly loggedOut: string; readonly newer: string },
): Promise<void> {
  // The logout happened after the backup, so restoring the backup has undone it, as the documentation warns. The refreshes after the backup
  // are still valid.
  expect((await refresh(service, loggedOut)).status).toBe(200);
  expect((await refresh(service, newer)).status).toBe(200);
  paste(REVOKE_ALL, { ADMIN_URL: service.adminUrl, ADMIN_TOKEN: service.adminToken });
  expect((await refresh(service, loggedOut)).status).toBe(401);
  expect((await refresh(service, newer)).status).toBe(401);
  const { refreshToken } = await logIn(service, "carol");
  expect((await refresh(service, refreshToken)).status).toBe(200);
}

/** Uses two sessions after the backup: one is logged out, and the other one is refreshed twice. Returns a token of each. */
async function goOn(
  service: Service,
  alice: Awaited<ReturnType<typeof logIn>>,
  bob: Awaited<ReturnType<typeof logIn>>,
) {
  const { status } = await call(`${service.publicUrl}/v1/auth/logout`, {
    authorization: `Bearer ${alice.accessToken}`,
  });
  expect(status).toBe(200);
  let newer = bob.refreshToken;
  for (let i = 0; i < 2; i++) newer = (await refresh(service, newer)).next;
  return { loggedOut: alice.refreshToken, newer };
}

test("an embedded store that is copied while it runs is restored without its sessions", async () => {
  const [backup = "", restore = ""] = commandsBelow("Embedded store");
  const first = await startService({ REUSE_INTERVAL: "0" });
  const alice = await logIn(first, "alice");
  const bob = await logIn(first, "bob");
  const env = { DATA_DIR: first.dataDir, BACKUP_DIR: join(scratch(), "backup") };
  paste(backup, env);
  const tokens = await goOn(first, alice, bob);
  await first.stop();
  paste(restore, env);
  const second = await startService({ REUSE_INTERVAL: "0", DATA_DIR: first.dataDir });
  for (const token of Object.values(tokens)) expect((await refresh(second, token)).status).toBe(401);
  const { refreshToken } = await logIn(second, "carol");
  expect((await refresh(second, refreshToken)).status).toBe(200);
  await second.stop();
});

test("a directory of an embedded store that is stopped is a backup", async () => {
  const first = await startService();
  const alice = await logIn(first, "alice");
  await first.stop();
  const copy = join(scratch(), "copy");
  cpSync(first.dataDir, copy, { recursive: true });
  const second = await startService({ DATA_DIR: copy });
  expect((await refresh(second, alice.refreshToken)).status).toBe(200);
  await second.stop();
});

const APPEND_ONLY = 'save ""\nappendonly yes';

async function redisWithSessions() {
  const redis = new RedisServer(await freePort(), []);
  await redis.start(APPEND_ONLY);
  const env = {
    REUSE_INTERVAL: "0",
    DATA_DIR: withKeys(),
    REDIS_URL: redis.url,
    REDIS_COMMAND_TIMEOUT: "10s",
    ADMIN_TOKENS: "admin".repeat(8),
  };
  const service = await startService(env);
  const directory = String((await redis.admin.config("GET", "dir"))[1 as never]);
  return { redis, env, service, directory, alice: await logIn(service, "alice"), bob: await logIn(service, "bob") };
}

test("a snapshot of a Redis is restored, with its append-only file on", async () => {
  const [backup = "", restore = ""] = commandsBelow("Redis");
  const { redis, env, service, directory, alice, bob } = await redisWithSessions();
  const file = join(scratch(), "backup.rdb");
  const shell = { REDIS_PORT: String(redis.port), BACKUP_FILE: file };
  paste(backup, shell);
  const tokens = await goOn(service, alice, bob);
  await service.stop();
  await redis.kill();
  rmSync(join(directory, "appendonlydir"), { recursive: true });
  cpSync(file, join(directory, "dump.rdb"));
  await redis.start();
  paste(restore, shell);
  await redis.kill();
  await redis.start(APPEND_ONLY); // From this start on, Redis keeps the data in its append-only file.
  const second = await startService(env);
  await expectRestored(second, tokens);
  await second.stop();
  await redis.stop();
});
