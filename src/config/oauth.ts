/** The settings of the OAuth endpoints, for clients that are not browsers. */
import type { Read } from "./reader.ts";
import { oneOf } from "./values.ts";

export function readOAuth(read: Read) {
  return {
    oauthEndpoints: read("OAUTH_ENDPOINTS", oneOf("on", "off"), "on" as const) === "on",
    dpopNonces: read("DPOP_NONCES", oneOf("on", "off"), "off" as const) === "on",
  };
}
