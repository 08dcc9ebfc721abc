/** Which callers of the admin API are accepted. */
import type { Read } from "./reader.ts";
import { adminToken, list } from "./values.ts";

export function readAdmin(read: Read) {
  return { adminTokens: read("ADMIN_TOKENS", list(adminToken), undefined) };
}
