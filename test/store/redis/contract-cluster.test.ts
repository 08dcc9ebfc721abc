import { redisClusterBackend } from "../backends.ts";
import { storeContract } from "../contract.ts";

storeContract("Redis Cluster", redisClusterBackend);
