import type { Protection } from "../../platform/files/protection.ts";

/** DATA_DIR is for the service alone. A directory that holds files, but none of these, is that of others. */
export const DATA_DIR_PROTECTION: Protection = {
  forbids: "read",
  mode: 0o700,
  ownNames: ["keys.json", "sessions.db", "admin-token"],
};
