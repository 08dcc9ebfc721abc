/** Settings of access tokens: the algorithm that signs them, their issuer and their audience. */
import { join } from "node:path";
import type { Read } from "./reader.ts";
import { list, oneOf, plainUrl, text } from "./values.ts";

export function readTokens(read: Read, dataDir: string) {
  return {
    keysFile: read("KEYS_FILE", text(4096), join(dataDir, "keys.json")),
    signingAlgorithm: read("SIGNING_ALGORITHM", oneOf("ES256", "EdDSA"), "ES256" as const),
    issuer: read("ISSUER", plainUrl, undefined),
    audiences: read("AUDIENCE", list(text(255)), undefined),
  };
}
