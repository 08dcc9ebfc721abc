import { redisClusterBackend } from "../../../support/store/backends.ts";
import { recordSearch } from "../record-search.ts";

recordSearch(redisClusterBackend);
