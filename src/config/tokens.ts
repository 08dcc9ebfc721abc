import { join } from "node:path";
import type { Read } from "./reader.ts";
import { duration, list, oneOf, plainUrl, SECOND_MS, text } from "./values.ts";

export function readTokens(read: Read, dataDir: string) {
  return {
    keysFile: read("KEYS_FILE", text(4096), join(dataDir, "keys.json")),
    signingAlgorithm: read("SIGNING_ALGORITHM", oneOf("ES256", "EdDSA"), "ES256" as const),
    issuer: read("ISSUER", plainUrl, undefined),
    audiences: read("AUDIENCE", list(text(255)), undefined),
    statusList: read("STATUS_LIST", oneOf("on", "off"), "off" as const) === "on",
    statusListTtlMs: read("STATUS_LIST_TTL", duration(SECOND_MS, 3600 * SECOND_MS), 10 * SECOND_MS),
  };
}
