/** Computes how many connections and bodies each listener accepts, so that they exhaust neither the open files nor the memory. */
import { OAuthService } from "../../../gen/auth/v1/oauth_pb.ts";
import { SessionService } from "../../../gen/auth/v1/session_pb.ts";
import { ADDRESS_SHARE, type ListenerLimits, MAX_PENDING_BODY_BYTES } from "../../platform/listener/limits.ts";
import { affordable, type Resources } from "../../platform/listener/resources.ts";
import { isProxyIn } from "../../platform/net/proxy-trust.ts";
import type { Config } from "../config/config.ts";

/** How many connections are reserved for the admin API. */
const ADMIN_CONNECTIONS = 1_000;
const MAX_PENDING_BODIES = 2_000;

type Limits = Pick<
  ListenerLimits,
  | "maxConnections"
  | "maxConnectionsPerAddress"
  | "needsCredential"
  | "isProxy"
  | "maxPendingBodies"
  | "requestTimeoutMs"
>;

type Settings = Pick<
  Config,
  "maxConnections" | "maxConnectionsPerAddress" | "maxBodyBytes" | "requestTimeoutMs" | "trustProxy"
>;

/**
 * The beginnings of the paths of calls that need a credential. A call that is served without one notes that itself, because its path may be
 * written with escapes.
 */
const CALLS = ["/v1/auth/", "/v1/oauth/", `/${SessionService.typeName}/`, `/${OAuthService.typeName}/`];

const needsCredential = (path: string): boolean => CALLS.some((start) => path.startsWith(start));

const proxyOf = (trust: Settings["trustProxy"]): ListenerLimits["isProxy"] =>
  typeof trust === "number" ? (trust === 0 ? undefined : () => true) : isProxyIn(trust);

export function listenerLimits(
  config: Settings,
  resources: Resources,
): { readonly public: Limits; readonly admin: Limits } {
  const { connections, bodyBytes } = affordable(resources, MAX_PENDING_BODY_BYTES);
  const admin = Math.max(4, Math.min(ADMIN_CONNECTIONS, Math.floor(connections / 4)));
  const others = Math.max(4, Math.min(config.maxConnections, connections - admin));
  const share = config.trustProxy !== 0 ? 1 : ADDRESS_SHARE;
  const common = {
    maxPendingBodies: Math.max(16, Math.min(MAX_PENDING_BODIES, Math.floor(bodyBytes / config.maxBodyBytes))),
    requestTimeoutMs: config.requestTimeoutMs,
    isProxy: proxyOf(config.trustProxy),
  };
  return {
    public: {
      ...common,
      maxConnections: others,
      maxConnectionsPerAddress: config.maxConnectionsPerAddress ?? Math.ceil(others * share),
      needsCredential: config.trustProxy !== 0 ? undefined : needsCredential,
    },
    // One address may have all connections of the admin API: internal services come from few addresses, and must authenticate.
    admin: { ...common, maxConnections: admin, maxConnectionsPerAddress: admin, needsCredential: undefined },
  };
}
