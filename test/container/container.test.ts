/**
 * The container image: it is small, has no shell, and runs without privileges on a read-only root. `npm run test:container` builds it
 * first, as an operator does; `npm test` runs its last command on this machine, with the same files.
 */
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, lstatSync, readdirSync, readFileSync } from "node:fs";
import { chmod, chown, mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { freePort } from "../support/free-port.ts";
import { request } from "../support/raw-http.ts";
import { startRedis } from "../support/redis.ts";
import { scratch } from "../support/service.ts";
import { cookie, logIn, successor } from "../support/sessions.ts";
import { until } from "../support/until.ts";
import { type Image, makeImage } from "./image.ts";
import { type Container, makeVolume, runContainer } from "./run.ts";

const MAX_IMAGE_MB = 150;
const BUILD_TIMEOUT_MS = 900_000;

test("a linter finds no fault in the Dockerfile", () => {
  const linter = "test/dependencies/tools/node_modules/dockerlinter/bin/dockerfilelinter.js";
  // ER0012 demands pinned versions of Debian's packages, which is not possible, because Debian removes old versions with every update.
  // EF0004 takes the name of a stage for an image without a version, and EI0001 does not distinguish stages.
  const options = ["--shellcheck", "sh", "--ignore", "ER0012,EF0004,EI0001", "--error", "info"];
  const linted = spawnSync(process.execPath, [linter, ...options, "--file", "deploy/container/Dockerfile"]);
  expect([linted.status, `${linted.stdout}${linted.stderr}`]).toEqual([0, ""]);
});

let image: Image;
beforeAll(async () => {
  image = await makeImage();
}, BUILD_TIMEOUT_MS);

/** Returns every file of a root directory. */
const filesOf = (root: string) =>
  readdirSync(root, { recursive: true, withFileTypes: true, encoding: "utf8" })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));

const sizeMb = (root: string) => filesOf(root).reduce((sum, path) => sum + lstatSync(path).size, 0) / 1e6;

describe("the image", () => {
  test(`is smaller than ${MAX_IMAGE_MB} MB, everything included`, () => {
    const size = sizeMb(image.root);
    if (image.baseRoot !== undefined) {
      console.log(`image ${size.toFixed(1)} MB; its base ${sizeMb(image.baseRoot).toFixed(1)} MB`);
    }
    expect(size).toBeLessThan(MAX_IMAGE_MB);
  });

  test("has Node, and neither npm nor a shell nor a package manager", () => {
    const names = filesOf(image.root).map((path) => path.slice(image.root.length));
    const programs = names.filter((path) => /\/s?bin\//.test(path) && !path.startsWith("/app/"));
    expect(programs).toEqual(["/usr/local/bin/node"]);
    expect(names.filter((path) => /(^|\/)npm(\/|-|$)/.test(path))).toEqual([]);
  });

  test("holds no secret, no file of another owner's rights, and no source of the repository's", () => {
    const paths = filesOf(image.root);
    expect(paths.filter((path) => (lstatSync(path).mode & 0o6002) !== 0)).toEqual([]);
    expect(paths.filter((path) => /keys\.json$|admin-token$|\.npmrc$|\.env$|\.test\.js$/.test(path))).toEqual([]);
    expect(existsSync(join(image.root, "app/deploy"))).toBe(false);
  });

  test("names the packages of its libraries, for scanners", () => {
    const packages = readdirSync(join(image.root, "var/lib/dpkg/status.d"));
    expect(packages).toEqual(expect.arrayContaining(["libc6", "libstdc++6", "libgcc-s1"]));
    for (const name of packages) {
      expect(readFileSync(join(image.root, "var/lib/dpkg/status.d", name), "utf8")).toContain("\nVersion: ");
    }
  });

  test("has compiled code that Node accepts with the image's flags", async () => {
    const code = join(image.root, "app/node_modules/.cache/code");
    const sizes = () => readdirSync(code).map((name) => lstatSync(join(code, name)).size);
    const [size = Number.NaN, ...others] = sizes();
    expect(others).toEqual([]);
    const [node, ...args] = image.config.entrypoint.map((part) =>
      part.startsWith("/") ? join(image.root, part) : part,
    );
    const env = {
      ...image.config.env,
      PORT: "0",
      ADMIN_PORT: "0",
      DATA_DIR: join(scratch(), "data"),
      LOG_LEVEL: "warn",
    };
    const service = spawn(join(image.root, "usr/local/bin", node as string), args, {
      env,
      stdio: ["ignore", "pipe", "ignore"],
    });
    const ended = once(service, "exit");
    await once(service.stdout, "data");
    service.kill("SIGINT");
    expect(await ended).toEqual([0, null]);
    // If other flags counted, this start would have stored code in another file.
    expect(sizes()).toEqual([expect.toSatisfy((now: number) => now >= size)]);
  });

  test("runs as a user that is not root, by number, so that an orchestrator can check it", () => {
    expect(image.config.user).toMatch(/^[1-9]\d*:[1-9]\d*$/);
  });
});

describe("a container on a read-only root", () => {
  let volume: string;
  let container: Container;
  let urls: { readonly publicUrl: string; readonly adminUrl: string };
  let env: Readonly<Record<string, string>>;

  async function start(): Promise<Container> {
    const started = await runContainer(image, volume, env);
    let ended = "";
    void started.exited.then(({ stderr }) => {
      ended = stderr || "no output";
    });
    await until(async () => {
      if (ended === "" && !started.stdout().includes('"event":"ready"')) throw new Error("not ready");
    });
    expect(ended).toBe("");
    return started;
  }

  beforeAll(async () => {
    const [port, adminPort] = [await freePort(), await freePort()];
    urls = { publicUrl: `http://127.0.0.1:${port}`, adminUrl: `http://127.0.0.1:${adminPort}` };
    env = { PORT: String(port), ADMIN_PORT: String(adminPort), DRAIN_DELAY: "60s" };
    volume = await makeVolume(image);
    container = await start();
  });
  afterAll(async () => {
    if (container !== undefined) process.kill(container.pid, "SIGKILL");
    await container?.exited;
  });

  const adminToken = async () => {
    const read = "process.stdout.write(require('fs').readFileSync(process.env.DATA_DIR + '/admin-token'))";
    return (await container.exec(["node", "-e", read])).stdout.trim();
  };
  const refresh = (token: string) =>
    request(urls.publicUrl, { method: "POST", path: "/v1/auth/refresh", headers: cookie(token) });

  test("is healthy by its own check, and not when the service does not respond", async () => {
    expect(await container.exec(image.config.healthcheck)).toMatchObject({ code: 0 });
    const elsewhere = await container.exec([
      ...["node", "-e"],
      `process.env.PORT = ${await freePort()}; import("/app/healthcheck.js")`,
    ]);
    expect(elsewhere.code).toBe(1);
  });

  test("is process 1, without root, without capabilities to gain", async () => {
    const status = readFileSync(`/proc/${container.pid}/status`, "utf8");
    expect(status).toMatch(/^NSpid:\t\d+\t1$/m);
    expect(status).toMatch(/^Uid:\t65532\t65532\t65532\t65532$/m);
    expect(status).toMatch(/^CapEff:\t0+$/m);
  });

  test("can write to its data alone", async () => {
    const write = (path: string) => container.exec(["node", "-e", `require("fs").writeFileSync("${path}", "")`]);
    expect((await write("/app/x")).stderr).toMatch(/EROFS|EACCES/);
    expect((await write("/tmp/x")).stderr).toContain("EROFS");
    expect((await write("/data/x")).code).toBe(0);
  });

  test("refreshes and logs out", async () => {
    const session = await logIn({ ...urls, adminToken: await adminToken() });
    const refreshed = await refresh(session.refreshToken);
    expect(refreshed.status).toBe(200);
    const next = successor(refreshed) as string;
    const path = "/v1/auth/logout";
    expect((await request(urls.publicUrl, { method: "POST", path, headers: cookie(next) })).status).toBe(200);
    expect((await refresh(next)).status).toBe(401);
  });

  test("has the commands", async () => {
    const listed = await container.exec([...image.config.entrypoint, "keys", "list"]);
    expect(listed).toMatchObject({ code: 0, stderr: "" });
    expect(listed.stdout).toContain("signing");
  });

  test("on SIGTERM it drains, at another signal it ends with 0, and it goes on with its sessions when it starts again", async () => {
    const session = await logIn({ ...urls, adminToken: await adminToken() });
    process.kill(container.pid, "SIGTERM");
    await until(async () => expect((await request(urls.publicUrl, { path: "/readyz" })).status).toBe(503));
    const served = await refresh(session.refreshToken);
    expect(served.status).toBe(200);
    process.kill(container.pid, "SIGINT");
    expect(await container.exited).toMatchObject({ code: 0 });
    container = await start();
    expect((await refresh(successor(served) as string)).status).toBe(200);
  });
});

/**
 * Writes files as Kubernetes mounts a Secret with `fsGroup`: owned by root, readable by the group, and behind links that all change at
 * once.
 */
async function mountSecret(volume: string, name: string, text: string): Promise<void> {
  const [uid, gid] = [0, Number(image.config.user.split(":")[1])];
  const mount = join(volume, "keys");
  await mkdir(join(mount, "..2026_11_21"), { recursive: true });
  const file = join(mount, "..2026_11_21", name);
  await writeFile(file, text);
  await chmod(file, 0o440);
  await chown(file, uid, gid);
  await chmod(mount, 0o3777);
  await symlink("..2026_11_21", join(mount, "..data"));
  await symlink(join("..data", name), join(mount, name));
}

test("a container starts on Redis with the key ring of a mounted Kubernetes Secret, and ends with 0 on SIGTERM", async () => {
  const redis = await startRedis();
  const volume = await makeVolume(image);
  const ring = join(scratch(), "keys.json");
  execFileSync(process.execPath, ["src/service/main.ts", "keys", "create", "--file", ring]);
  await mountSecret(volume, "keys.json", readFileSync(ring, "utf8"));
  const [port, adminPort] = [await freePort(), await freePort()];
  const container = await runContainer(image, volume, {
    PORT: String(port),
    ADMIN_PORT: String(adminPort),
    KEYS_FILE: "/data/keys/keys.json",
    REDIS_URL: redis.url,
    REDIS_COMMAND_TIMEOUT: "10s",
    ADMIN_TOKENS: "a".repeat(64),
    DRAIN_DELAY: "0",
    // No collector listens at this address. The service only starts if the image contains the exporter.
    OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:9",
    OTEL_TRACES_EXPORTER: "otlp",
    OTEL_METRICS_EXPORTER: "otlp",
  });
  await until(async () =>
    expect(container.stdout() + container.stderr()).toMatch(/"event":"ready"|KEYS_FILE|key ring/),
  );
  expect(container.stderr()).not.toContain("key ring");
  expect((await request(`http://127.0.0.1:${port}`, { path: "/readyz" })).status).toBe(200);
  process.kill(container.pid, "SIGTERM");
  expect(await container.exited).toMatchObject({ code: 0 });
  await redis.stop();
});
