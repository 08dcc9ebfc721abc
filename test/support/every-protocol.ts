/** Runs the same tests through every listener and with every store. */
import { afterAll, beforeAll, describe } from "vitest";
import type { Caller, ProtocolClient } from "./clients.ts";
import { type RedisServer, startRedis } from "./redis.ts";
import { type Service, startService, withKeys } from "./service.ts";

export const STORES = ["embedded", "redis"] as const;

/** A service for the tests of a `describe`, with the URL of its Redis if it has one. */
export type ServiceOnStore = Service & { readonly redisUrl: string | undefined };

/**
 * Starts a service with its own store before the tests of a `describe`, and stops it after them. The properties of the result can be read
 * only while these tests run.
 */
export function aService(
  env: Readonly<Record<string, string>> = {},
  store: (typeof STORES)[number] = "embedded",
): ServiceOnStore {
  let service: Service | undefined;
  let redis: RedisServer | undefined;
  beforeAll(async () => {
    if (store === "redis") redis = await startRedis();
    const onRedis = redis && {
      ...{ DATA_DIR: withKeys(), REDIS_URL: redis.url, ADMIN_TOKENS: "a".repeat(40) },
      // On a busy machine a command may wait longer than the default for its turn.
      REDIS_COMMAND_TIMEOUT: "10s",
    };
    service = await startService({ ...onRedis, ...env });
  });
  afterAll(async () => {
    await service?.stop();
    await redis?.stop();
  });
  return onceStarted(
    () => service,
    () => redis?.url,
  );
}

/** Returns an object that stands for a service that is started later. Test code can refer to it before the start. */
function onceStarted(find: () => Service | undefined, redisUrl: () => string | undefined): ServiceOnStore {
  const started = () => {
    const service = find();
    if (service === undefined) throw new Error("the service has not started");
    return service;
  };
  return {
    get pid() {
      return started().pid;
    },
    get exited() {
      return started().exited;
    },
    get publicUrl() {
      return started().publicUrl;
    },
    get adminUrl() {
      return started().adminUrl;
    },
    get adminToken() {
      return started().adminToken;
    },
    get redisUrl() {
      return redisUrl();
    },
    get dataDir() {
      return started().dataDir;
    },
    get ready() {
      return started().ready;
    },
    stdout: () => started().stdout(),
    stderr: () => started().stderr(),
    kill: (signal) => started().kill(signal),
    stop: () => started().stop(),
    kill9: () => started().kill9(),
    restart: (changes) => started().restart(changes),
  };
}

/** Runs the same tests through each listener. The caller stays open while they run. */
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
