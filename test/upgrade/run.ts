/**
 * `npm run test:upgrade` follows docs/operations.md#upgrade with live sessions: from the last release to this tree and back, on both
 * stores. It runs the release from this repository's history, with the dependencies of that release.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { startRedis } from "../support/redis.ts";
import { type Service, scratch, spawnService, startService } from "../support/service.ts";

const ROOT = join(import.meta.dirname, "../..");
/** The releases from which an upgrade is supported, with their commits. A later release is added here. */
const RELEASES = { "0.1.0": "558fe80" } as const;
const SESSIONS = 20;

/** Checks out a release and installs its dependencies. Returns the directory. */
function checkOut(commit: string): string {
  const tree = join(scratch(), "release");
  mkdirSync(tree);
  const archive = join(tree, "release.tar");
  execFileSync("git", ["archive", `--output=${archive}`, commit], { cwd: ROOT });
  execFileSync("tar", ["xf", archive], { cwd: tree });
  const install = ["ci", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
  execFileSync("npm", install, { cwd: tree, stdio: ["ignore", "ignore", "inherit"] });
  return tree;
}

/** What a browser holds of a session: its cookie and its access token. */
class Holder {
  cookie = "";
  accessToken = "";

  static async login(service: Service, subject: string): Promise<Holder> {
    const response = await fetch(`${service.adminUrl}/auth.admin.v1.SessionAdminService/CreateSession`, {
      method: "POST",
      headers: { authorization: `Bearer ${service.adminToken}`, "content-type": "application/json" },
      body: JSON.stringify({ subject }),
    });
    assert.equal(response.status, 200);
    const { refreshToken, accessToken } = (await response.json()) as { refreshToken: string; accessToken: string };
    const holder = new Holder();
    Object.assign(holder, { cookie: `refresh_token=${refreshToken}`, accessToken });
    return holder;
  }

  async refresh(service: Service): Promise<number> {
    const response = await fetch(`${service.publicUrl}/v1/auth/refresh`, {
      method: "POST",
      headers: { cookie: this.cookie },
    });
    const body = (await response.json()) as { data?: { accessToken?: string } };
    if (response.status !== 200) return response.status;
    this.cookie = (response.headers.getSetCookie()[0] ?? "").split(";")[0] ?? "";
    this.accessToken = body.data?.accessToken ?? "";
    return 200;
  }

  async logout(service: Service): Promise<number> {
    const headers = { authorization: `Bearer ${this.accessToken}` };
    return (await fetch(`${service.publicUrl}/v1/auth/logout`, { method: "DELETE", headers })).status;
  }
}

async function eachRefreshes(holders: readonly Holder[], service: Service, where: string): Promise<void> {
  for (const holder of holders) assert.equal(await holder.refresh(service), 200, where);
  console.log(`  ${holders.length} sessions refreshed by ${where}`);
}

const logIn = (service: Service) =>
  Promise.all(Array.from({ length: SESSIONS }, (_, i) => Holder.login(service, `user-${i}`)));

/** Upgrades one instance after the other while both versions run, and then goes back to the old version. */
async function onRedis(version: string, tree: string): Promise<void> {
  console.log(`Redis, ${version} → this version → ${version}`);
  const redis = await startRedis();
  const dataDir = join(scratch(), "data");
  const keysFile = join(scratch(), "keys.json");
  execFileSync(process.execPath, [join(ROOT, "src/main.ts"), "keys", "create", "--file", keysFile]);
  const env = {
    REDIS_URL: redis.url,
    KEYS_FILE: keysFile,
    ISSUER: "http://127.0.0.1:8080",
    ADMIN_TOKENS: "an-admin-token-that-both-versions-accept",
    DATA_DIR: dataDir,
  };
  const old = await startService(env, tree);
  const [holders, leaving] = [await logIn(old), await logIn(old)];
  const current = await startService(env);
  await eachRefreshes(holders, current, "this version beside the other");
  await eachRefreshes(holders, old, `${version} beside the other`);
  const later = await logIn(current);
  await eachRefreshes(later, old, `${version}, created by this version`);
  for (const [i, holder] of leaving.entries()) {
    const [ending, other] = i % 2 === 0 ? [old, current] : [current, old];
    assert.equal(await holder.logout(ending), 200);
    assert.equal(await holder.refresh(other), 401, "a logout is true on the other version");
  }
  console.log(`  ${leaving.length} logouts by one version are true on the other`);
  await old.stop();
  await eachRefreshes([...holders, ...later], current, "this version alone");
  const back = await old.restart();
  await current.stop();
  await eachRefreshes([...holders, ...later], back, `${version}, back again`);
  await back.stop();
  await redis.stop();
}

/** Upgrades a service on the embedded store, whose only process is stopped and started. Going back uses a copy of the data from before. */
async function onEmbedded(version: string, tree: string): Promise<void> {
  console.log(`embedded store, ${version} → this version → ${version}`);
  const old = await startService({}, tree);
  const holders = await logIn(old);
  await eachRefreshes(holders, old, version);
  await old.stop();
  const copy = join(scratch(), "copy");
  cpSync(old.dataDir, copy, { recursive: true });
  const current = await startService({ DATA_DIR: old.dataDir, ISSUER: old.publicUrl });
  await eachRefreshes(holders, current, "this version, from the same directory");
  await current.stop();
  const refused = spawnService({ PORT: "0", ADMIN_PORT: "0", DATA_DIR: old.dataDir }, tree);
  assert.equal((await refused.exited).code, 1);
  console.log(`  ${version} refuses the directory: ${refused.stderr().trim().split("\n").at(-1)?.slice(0, 160)}`);
  const restored = await startService({ DATA_DIR: copy }, tree);
  const [last] = await logIn(restored);
  assert.equal(await last?.refresh(restored), 200);
  console.log(`  ${version} runs on the copy from before the upgrade`);
  await restored.stop();
}

for (const [version, commit] of Object.entries(RELEASES)) {
  const tree = checkOut(commit);
  await onRedis(version, tree);
  await onEmbedded(version, tree);
}
console.log("every session survived, every logout held");
