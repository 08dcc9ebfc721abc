/** What the published service loads of Node. Its sources load more: an import from `node:http` loads Node's implementation of fetch (join.ts). */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import { builtPackages } from "../support/packages.ts";
import { startRedis } from "../support/redis.ts";
import { scratch, withKeys } from "../support/service.ts";

const ADMIN_TOKEN = "built-ins-admin-token-built-ins-admin-token";
let command: string;
beforeAll(async () => {
  command = join(await builtPackages(["service"]), "service/bin/session-service.cjs");
});

/** Returns the modules of Node that a service has loaded when it ends, after a login, a refresh and two refusals. */
async function loadedWith(env: Readonly<Record<string, string>>): Promise<string> {
  const [recorder, list] = ["record.mjs", "list"].map((name) => join(scratch(), name)) as [string, string];
  const record = `require("node:fs").writeFileSync(${JSON.stringify(list)}, process.moduleLoadList.join("\\n"))`;
  writeFileSync(recorder, `const require = process.getBuiltinModule; process.on("exit", () => ${record});`);
  const options = { NODE_OPTIONS: `--import=${pathToFileURL(recorder)}`, PORT: "0", ADMIN_PORT: "0", DRAIN_DELAY: "0" };
  const all = { PATH: process.env.PATH, ADMIN_TOKENS: ADMIN_TOKEN, ...options, ...env };
  const service = spawn(process.execPath, [command], { env: all, stdio: ["ignore", "pipe", "ignore"] });
  onTestFinished(() => void service.kill("SIGKILL"));
  const ended = once(service, "exit");
  const [ready] = await once(createInterface({ input: service.stdout }), "line");
  const urls = JSON.parse(String(ready)) as { public: string; admin: string };

  const created = await fetch(`${urls.admin}/auth.admin.v1.SessionAdminService/CreateSession`, {
    method: "POST",
    headers: { authorization: `Bearer ${ADMIN_TOKEN}`, "content-type": "application/json" },
    body: '{"subject":"alice"}',
  });
  const { setCookie } = (await created.json()) as { setCookie: string };
  const statuses: number[] = [];
  for (const cookie of [setCookie.split(";", 1)[0] ?? "", "refresh_token=forged", ""]) {
    const response = await fetch(`${urls.public}/v1/auth/refresh`, { method: "POST", headers: { cookie } });
    await response.text();
    statuses.push(response.status);
  }
  expect(statuses).toEqual([200, 401, 401]);
  service.kill("SIGTERM");
  await ended;
  return readFileSync(list, "utf8");
}

test("the embedded store works without Node's implementation of fetch", async () => {
  const loaded = await loadedWith({ DATA_DIR: join(scratch(), "data") });
  expect(loaded).toContain("NativeModule http2");
  expect(loaded).not.toMatch(/undici|webstreams/);
});

test("so does the Redis store", async () => {
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  const loaded = await loadedWith({ DATA_DIR: withKeys(), REDIS_URL: redis.url });
  expect(loaded).not.toMatch(/undici|webstreams/);
});
