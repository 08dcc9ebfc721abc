import { redisBackend, redisClusterBackend } from "../../support/store/backends.ts";
import { expiryContract } from "./expiry.ts";

expiryContract("Redis", redisBackend);
expiryContract("Redis Cluster", redisClusterBackend);
