/** While the store is down, nobody is redirected to the login. */
import { expect, test } from "vitest";
import { createGate } from "../../src/server/index.ts";
import { createVerifier } from "../../src/verifier/index.ts";
import { startRedis } from "../support/redis.ts";
import { startService, withKeys } from "../support/service.ts";
import { until } from "../support/until.ts";
import { ALWAYS_DUE, aServer, COOKIES, signIn } from "./world.ts";

test("while the store is down a page renders as unavailable, without a redirect and without a cookie, and recovers", async () => {
  const redis = await startRedis();
  const env = { ...COOKIES, DATA_DIR: withKeys(), REDIS_URL: redis.url, ADMIN_TOKENS: "a".repeat(40) };
  const service = await startService(env);
  try {
    const jar = await signIn(service);
    const { publicUrl, adminUrl, adminToken } = service;
    const verifier = createVerifier({ adminUrl, adminToken, issuer: publicUrl, audience: publicUrl });
    await verifier.ready;
    const { sessions } = aServer(service, verifier, ALWAYS_DUE);
    const gate = createGate(sessions);
    jar.cookies.delete("access_token");
    redis.pause();
    const down = await gate(jar.request("/account", { accept: "text/html" }));
    expect(down.response).toBeUndefined();
    expect(down.authentication.user).toEqual({ state: "unavailable" });
    expect(down.authentication.setCookies).toEqual([]);
    redis.resume();
    await until(async () => expect((await sessions.authenticate(jar.request())).user.state).toBe("active"));
    verifier.close();
  } finally {
    redis.resume();
    await service.stop();
    await redis.stop();
  }
});
