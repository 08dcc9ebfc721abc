import { redisBackend } from "../backends.ts";
import { storeContract } from "../contract.ts";

storeContract("Redis", redisBackend);
