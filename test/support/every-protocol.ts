/** One rule, every listener, and every store behind it. */
import { afterAll, beforeAll, describe } from "vitest";
import type { Caller, ProtocolClient } from "./clients.ts";
import { type RedisServer, startRedis } from "./redis.ts";
import { type Service, startService, withKeys } from "./service.ts";

export const STORES = ["embedded", "redis"] as const;

/** A service that runs while the tests of a `describe` do, on a store of its own. */
export function aService(
  env: Readonly<Record<string, string>> = {},
  store: (typeof STORES)[number] = "embedded",
): Service {
  let service: Service;
  let redis: RedisServer | undefined;
  beforeAll(async () => {
    if (store === "embedded") service = await startService(env);
    else {
      redis = await startRedis();
      service = await startService({
        DATA_DIR: withKeys(),
        REDIS_URL: redis.url,
        ADMIN_TOKENS: "a".repeat(40),
        ...env,
      });
    }
  });
  afterAll(async () => {
    await service.stop();
    await redis?.stop();
  });
  return new Proxy({} as Service, { get: (_, name) => Reflect.get(service, name) });
}

/** The same rules once per listener; the caller is open while they run. */
export function throughEvery(
  kinds: readonly ProtocolClient[],
  url: () => string,
  rules: (caller: Caller) => void,
): void {
  describe.each(kinds)("$name", (kind) => {
    let open: Caller;
    beforeAll(() => {
      open = kind.open(url());
    });
    afterAll(() => open.close());
    rules({ call: (...given) => open.call(...given), stream: (...given) => open.stream(...given), close: () => {} });
  });
}
