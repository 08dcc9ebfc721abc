/**
 * `npm run test:upgrade` follows docs/tasks/upgrade.md with live sessions: from every release to this tree and back, on both stores.
 * It runs the releases from this repository's history, with the dependencies of each.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { SessionEventType as Type } from "../../gen/auth/admin/v1/session_admin_pb.ts";
import { startRedis } from "../support/redis.ts";
import { type Service, scratch, spawnService, startService } from "../support/service.ts";
import { admin, bearer, message, openAdmin } from "../support/sessions.ts";
import { until } from "../support/until.ts";
import { commitOf, releases } from "./releases.ts";
import { followWith } from "./verifier.ts";

const ROOT = join(import.meta.dirname, "../..");
const SESSIONS = 20;

/** What 0.1.0 cannot read of a session, so that sessions have it on the way from later releases alone. */
const lacking = (version: string) =>
  version === "0.1.0" ? {} : { acr: "high", amr: ["pwd"], authTime: new Date().toISOString() };

/** Checks out a release and installs its dependencies. Returns the directory. */
function checkOut(version: string): string {
  const tree = join(scratch(), "release");
  mkdirSync(tree);
  const archive = join(tree, "release.tar");
  execFileSync("git", ["archive", `--output=${archive}`, commitOf(version)], { cwd: ROOT });
  execFileSync("tar", ["xf", archive], { cwd: tree });
  assert.equal(JSON.parse(readFileSync(join(tree, "package.json"), "utf8")).version, version);
  const install = ["ci", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
  execFileSync("npm", install, { cwd: tree, stdio: ["ignore", "ignore", "inherit"] });
  return tree;
}

/** What a browser holds of a session: its cookie and its access token. */
class Holder {
  subject = "";
  acr: string | undefined;
  cookie = "";
  accessToken = "";

  static async login(service: Service, subject: string, more: { readonly acr?: string }): Promise<Holder> {
    const response = await fetch(`${service.adminUrl}/auth.admin.v1.SessionAdminService/CreateSession`, {
      method: "POST",
      headers: { authorization: `Bearer ${service.adminToken}`, "content-type": "application/json" },
      body: JSON.stringify({ subject, claims: { role: `role of ${subject}` }, ...more }),
    });
    assert.equal(response.status, 200);
    const { refreshToken, accessToken } = (await response.json()) as { refreshToken: string; accessToken: string };
    const holder = new Holder();
    Object.assign(holder, { subject, acr: more.acr, cookie: `refresh_token=${refreshToken}`, accessToken });
    return holder;
  }

  get claims(): { readonly sid: string; readonly iss: string; readonly sub: string; role?: string; acr?: string } {
    return JSON.parse(Buffer.from(this.accessToken.split(".")[1] ?? "", "base64url").toString());
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
    const { sub, role, acr } = this.claims;
    assert.deepEqual([sub, role, acr], [this.subject, `role of ${this.subject}`, this.acr]);
    return 200;
  }

  /** Changes the audiences of the session, and makes its access tokens from before stale. */
  async update(service: Service): Promise<number> {
    const { sid, iss } = this.claims;
    const response = await fetch(`${service.adminUrl}/v1/sessions/${sid}`, {
      method: "PATCH",
      headers: { authorization: `Bearer ${service.adminToken}`, "content-type": "application/json" },
      body: JSON.stringify({ audiences: [iss, "b"], accessTokens: "ACCESS_TOKEN_POLICY_REFRESH" }),
    });
    return response.status;
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

/** Checks what this version lists of sessions that 0.2.0, the first release with events, created. An instance writes events a moment later. */
async function eachListed(holders: readonly Holder[], service: Service, version: string, types: readonly Type[]) {
  if (version === "0.1.0") return;
  for (const { claims } of holders) {
    await until(async () => {
      const request = { sessionId: claims.sid };
      const response = await openAdmin(service).call(admin.listSessionEvents, request, bearer(service.adminToken));
      assert.deepEqual(
        message(response).events.map(({ type }) => type),
        types,
      );
    });
  }
  console.log(`  ${holders.length} sessions listed with their ${types.length === 1 ? "creation" : "creation and end"}`);
}

const logIn = (service: Service, version: string) =>
  Promise.all(Array.from({ length: SESSIONS }, (_, i) => Holder.login(service, `user-${i}`, lacking(version))));

/**
 * Updates a session beside an instance of the other version, which cannot read that session (docs/tasks/roles.md). It must neither end it nor
 * lose its place in the revocation log: the logouts that follow are true on both.
 */
async function update(holders: Holder[], current: Service, old: Service, version: string): Promise<void> {
  const holder = holders.pop();
  assert(holder);
  assert.equal(await holder.update(current), 200);
  assert.equal(await holder.refresh(old), 500, `${version} cannot read the session`);
  assert.equal(await holder.refresh(current), 200, "the session lives on");
  assert.equal(await holder.logout(current), 200);
  assert.equal(await holder.refresh(old), 401, "a logout of it is true on the other version");
  console.log(`  an updated session lives on beside ${version}`);
}

/** Upgrades one instance after the other while both versions run, and then goes back to the old version. */
async function onRedis(version: string, tree: string): Promise<void> {
  console.log(`Redis, ${version} → this version → ${version}`);
  const redis = await startRedis();
  const dataDir = join(scratch(), "data");
  const keysFile = join(scratch(), "keys.json");
  execFileSync(process.execPath, [join(ROOT, "src/service/main.ts"), "keys", "create", "--file", keysFile]);
  const env = {
    REDIS_URL: redis.url,
    KEYS_FILE: keysFile,
    ISSUER: "http://127.0.0.1:8080",
    ADMIN_TOKENS: "an-admin-token-that-both-versions-accept",
    DATA_DIR: dataDir,
  };
  const old = await startService(env, tree);
  const [holders, leaving] = [await logIn(old, version), await logIn(old, version)];
  const current = await startService(env);
  await eachListed([...holders, ...leaving], current, version, [Type.CREATED]);
  await eachRefreshes(holders, current, "this version beside the other");
  await eachRefreshes(holders, old, `${version} beside the other`);
  const later = await logIn(current, version);
  await eachRefreshes(later, old, `${version}, created by this version`);
  await update(later, current, old, version);
  for (const [i, holder] of leaving.entries()) {
    const [ending, other] = i % 2 === 0 ? [old, current] : [current, old];
    assert.equal(await holder.logout(ending), 200);
    assert.equal(await holder.refresh(other), 401, "a logout is true on the other version");
  }
  console.log(`  ${leaving.length} logouts by one version are true on the other`);
  await eachListed(leaving, current, version, [Type.ENDED, Type.CREATED]);
  await old.stop();
  await eachRefreshes([...holders, ...later], current, "this version alone");
  const back = await old.restart();
  await current.stop();
  await eachRefreshes([...holders, ...later], back, `${version}, back again`);
  await back.stop();
  await redis.stop();
}

const ended = async (holders: readonly Holder[], service: Service) => {
  for (const holder of holders)
    assert.equal(await holder.refresh(service), 401, "a logout is true on the other version");
};

/** Checks that a service of the release follows the revocation log past a mark: what ends is reported. */
async function followed(service: Service): Promise<void> {
  const holder = await Holder.login(service, "the last", {});
  assert.equal(await holder.logout(service), 200);
  const leaving = new AbortController();
  const stream = openAdmin(service).stream(admin.watchRevocations, {}, bearer(service.adminToken), leaving.signal);
  for await (const { revocations } of stream) {
    if (revocations.some(({ reason }) => reason === "logout")) break;
  }
  leaving.abort();
}

/** Returns the number of the schema that a store has (src/service/store/embedded/schema.ts). */
function schemaOf(dataDir: string): unknown {
  const db = new DatabaseSync(join(dataDir, "sessions.db"), { readOnly: true });
  try {
    return db.prepare("PRAGMA user_version").get()?.user_version;
  } finally {
    db.close();
  }
}

/**
 * Upgrades a service on the embedded store, whose process is stopped and started. Going back uses the same file if this version has not
 * changed its tables, else a copy of the data from before.
 */
async function onEmbedded(version: string, tree: string): Promise<void> {
  console.log(`embedded store, ${version} → this version → ${version}`);
  const old = await startService({}, tree);
  const env = { DATA_DIR: old.dataDir, ISSUER: old.publicUrl };
  const [holders, leaving, later] = [await logIn(old, version), await logIn(old, version), await logIn(old, version)];
  await eachRefreshes(holders, old, version);
  for (const holder of leaving) assert.equal(await holder.logout(old), 200);
  const schema = schemaOf(old.dataDir);
  await old.stop();
  const copy = join(scratch(), "copy");
  cpSync(old.dataDir, copy, { recursive: true });
  const current = await startService(env);
  await eachRefreshes(holders, current, "this version, from the same directory");
  await ended(leaving, current);
  for (const holder of later) assert.equal(await holder.logout(current), 200);
  await eachListed(holders, current, version, [Type.CREATED]);
  await eachListed([...leaving, ...later], current, version, [Type.ENDED, Type.CREATED]);
  const created = await logIn(current, version);
  for (const holder of created.slice(0, 1)) assert.equal(await holder.update(current), 200);
  await current.stop();
  if (schemaOf(old.dataDir) === schema) {
    const back = await startService(env, tree);
    await eachRefreshes([...holders, ...created], back, `${version}, back on the same file`);
    await ended([...leaving, ...later], back);
    await followed(back);
    await back.stop();
    const again = await startService(env);
    await eachRefreshes([...holders, ...created], again, "this version again");
    await ended([...leaving, ...later], again);
    await again.stop();
    return;
  }
  const refused = spawnService({ PORT: "0", ADMIN_PORT: "0", DATA_DIR: old.dataDir }, tree);
  assert.equal((await refused.exited).code, 1);
  assert.match(refused.stderr(), /made by a newer version of this service/);
  console.log(`  ${version} refuses the file of this version`);
  const restored = await startService({ ...env, DATA_DIR: copy }, tree);
  await eachRefreshes(holders, restored, `${version}, on the copy from before the upgrade`);
  await ended(leaving, restored);
  await restored.stop();
}

for (const version of releases()) {
  const tree = checkOut(version);
  await onRedis(version, tree);
  await onEmbedded(version, tree);
  await followWith(version, tree);
}
console.log("every session survived, every logout held");
