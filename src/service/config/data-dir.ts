import type { Protection } from "../../platform/files/protection.ts";

/** The names of the files in DATA_DIR. The key ring is elsewhere with KEYS_FILE. */
export const DATA_FILES = { keys: "keys.json", store: "sessions.db", adminToken: "admin-token" } as const;

/** DATA_DIR is for the service alone. A directory that holds files, but none of these, is that of others. */
export const DATA_DIR_PROTECTION: Protection = {
  forbids: "read",
  mode: 0o700,
  ownNames: Object.values(DATA_FILES),
};
