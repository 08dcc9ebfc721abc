/**
 * How many connections each listener takes, and how many bodies, so that together they never use up the files that the process may
 * open, nor the memory of its container.
 */
import { OAuthService } from "../../gen/auth/v1/oauth_pb.ts";
import type { Config } from "../config/config.ts";
import { ADDRESS_SHARE, type ListenerLimits, MAX_PENDING_BODY_BYTES } from "../listener/limits.ts";
import { affordable, type Resources } from "../listener/resources.ts";

/** Connections that the admin API has for itself, whatever happens on the public one. */
const ADMIN_CONNECTIONS = 1_000;
const MAX_PENDING_BODIES = 2_000;

type Limits = Pick<
  ListenerLimits,
  "maxConnections" | "maxConnectionsPerAddress" | "credentialInBody" | "maxPendingBodies" | "requestTimeoutMs"
>;

type Settings = Pick<
  Config,
  "maxConnections" | "maxConnectionsPerAddress" | "maxBodyBytes" | "requestTimeoutMs" | "trustProxy"
>;

/** Stock clients of OAuth send the refresh token in a form. */
const isOAuthEndpoint = (path: string) =>
  path.startsWith("/v1/oauth/") || path.startsWith(`/${OAuthService.typeName}/`);

export function listenerLimits(
  config: Settings,
  resources: Resources,
): { readonly public: Limits; readonly admin: Limits } {
  const { connections, bodyBytes } = affordable(resources, MAX_PENDING_BODY_BYTES);
  const admin = Math.max(4, Math.min(ADMIN_CONNECTIONS, Math.floor(connections / 4)));
  const others = Math.max(4, Math.min(config.maxConnections, connections - admin));
  const share = config.trustProxy > 0 ? 1 : ADDRESS_SHARE;
  const common = {
    maxPendingBodies: Math.max(16, Math.min(MAX_PENDING_BODIES, Math.floor(bodyBytes / config.maxBodyBytes))),
    requestTimeoutMs: config.requestTimeoutMs,
  };
  return {
    public: {
      ...common,
      maxConnections: others,
      maxConnectionsPerAddress: config.maxConnectionsPerAddress ?? Math.ceil(others * share),
      credentialInBody: config.trustProxy > 0 ? undefined : isOAuthEndpoint,
    },
    // Internal services share few addresses, and authenticate.
    admin: { ...common, maxConnections: admin, maxConnectionsPerAddress: admin, credentialInBody: undefined },
  };
}
