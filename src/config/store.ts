/** Where sessions are kept. */

import type { AddFault, Read } from "./reader.ts";
import { parseRedisUrl, type RedisTarget } from "./redis-url.ts";
import { duration, Fault, integer, SECOND_MS, text } from "./values.ts";

function redisTarget(value: string): RedisTarget | Fault {
  const target = parseRedisUrl(value);
  return "fault" in target ? new Fault(target.fault) : target;
}

export function readStore(read: Read, addFault: AddFault) {
  const store = {
    redis: read("REDIS_URL", redisTarget, undefined),
    redisWaitReplicas: read("REDIS_WAIT_REPLICAS", integer(0, 16), 0),
    redisCommandTimeout: read("REDIS_COMMAND_TIMEOUT", duration(10, 10 * SECOND_MS), 500),
    dataDir: read("DATA_DIR", text(4096), "./data"),
  };
  if (store.redis === undefined && store.redisWaitReplicas > 0) addFault("REDIS_WAIT_REPLICAS needs REDIS_URL");
  return store;
}
