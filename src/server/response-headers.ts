import type { Config } from "../config/config.ts";
import { type SecurityHeaders, securityHeaders } from "../listener/security-headers.ts";

/** The header fields of every response, as the configuration has them. */
export function responseHeaders(config: Pick<Config, "tlsCertFile" | "trustProxy" | "hstsMaxAgeMs">): SecurityHeaders {
  return securityHeaders({
    tls: config.tlsCertFile !== undefined,
    trustedProxies: config.trustProxy,
    hstsMaxAgeMs: config.hstsMaxAgeMs,
  });
}
