import { redisBackend } from "../backends.ts";
import { recordSearch } from "../record-search.ts";

recordSearch(redisBackend);
