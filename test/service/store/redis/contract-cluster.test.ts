import { redisClusterBackend } from "../../../support/store/backends.ts";
import { storeContract } from "../contract.ts";

storeContract("Redis Cluster", redisClusterBackend);
