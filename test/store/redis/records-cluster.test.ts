import { redisClusterBackend } from "../backends.ts";
import { recordSearch } from "../record-search.ts";

recordSearch(redisClusterBackend);
