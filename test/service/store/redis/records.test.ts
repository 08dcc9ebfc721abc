import { redisBackend } from "../../../support/store/backends.ts";
import { recordSearch } from "../record-search.ts";

recordSearch(redisBackend);
