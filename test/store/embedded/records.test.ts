import { embeddedBackend } from "../backends.ts";
import { recordSearch } from "../record-search.ts";

recordSearch(embeddedBackend);
