/** What no setting asks for is not loaded: it would take memory and time of every start. */
import { expect, onTestFinished, test } from "vitest";
import { recordLoads } from "../../support/loaded-modules.ts";
import { startRedis } from "../../support/redis.ts";
import { startService, withKeys } from "../../support/service.ts";

/** Returns the list of the modules that a service loads until it is ready. */
async function loadedWith(env: Readonly<Record<string, string>>): Promise<string> {
  const modules = recordLoads();
  // The service runs from its sources, because a bundle would combine modules.
  const service = await startService({ ...modules.env, ...env }, process.cwd());
  onTestFinished(async () => void (await service.kill9()));
  return modules.loaded();
}

test("the embedded store is loaded without Redis, the Public Suffix List and OpenID Connect", async () => {
  const loaded = await loadedWith({});
  expect(loaded).toContain("/store/embedded/store.ts");
  expect(loaded).not.toMatch(/\/ioredis\/|\/store\/redis\/|\/tldts\/|\/openid-client\//);
});

test("the Redis store is loaded without the embedded one", async () => {
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  const loaded = await loadedWith({ DATA_DIR: withKeys(), REDIS_URL: redis.url });
  expect(loaded).toContain("/store/redis/store.ts");
  expect(loaded).not.toMatch(/\/store\/embedded\//);
});

test("a setting that names a domain loads the Public Suffix List", async () => {
  expect(await loadedWith({ COOKIE_DOMAIN: ".example.com" })).toContain("/tldts/");
});
