/**
 * How many connections each listener takes, and how many bodies, so that together they never use up the files that the process may
 * open, nor the memory of its container.
 */
import type { Config } from "../config/config.ts";
import { ADDRESS_SHARE, type ListenerLimits, MAX_PENDING_BODY_BYTES } from "../listener/limits.ts";
import { OTHER_FILES, type Resources } from "../listener/resources.ts";

/** Connections that the admin API has for itself, whatever happens on the public one. */
const ADMIN_CONNECTIONS = 1_000;
const MAX_PENDING_BODIES = 2_000;

const MIB = 1024 * 1024;
/** What the process takes beside connections and bodies under load, bytes. Measured: docs/security.md. */
const OTHER_MEMORY = 256 * MIB;
/** What an open connection takes, bytes: the dearer kind, HTTP/2. */
const CONNECTION_MEMORY = 36 * 1024;
/** What a body on its way weighs, of its own bytes. */
const BODY_WEIGHT = 1.5;
/** The most that bodies on their way take of the memory that is left for them and for connections. */
const BODIES_SHARE = 0.4;

type Limits = Pick<
  ListenerLimits,
  "maxConnections" | "maxConnectionsPerAddress" | "maxPendingBodies" | "requestTimeoutMs"
>;

type Settings = Pick<
  Config,
  "maxConnections" | "maxConnectionsPerAddress" | "maxBodyBytes" | "requestTimeoutMs" | "trustProxy"
>;

export function listenerLimits(
  config: Settings,
  { openFiles, memory }: Resources,
): { readonly public: Limits; readonly admin: Limits } {
  const left = Math.max(0, memory - OTHER_MEMORY);
  const bodyBytes = Math.min(MAX_PENDING_BODY_BYTES, (left * BODIES_SHARE) / BODY_WEIGHT);
  const affordable = Math.floor((left - bodyBytes * BODY_WEIGHT) / CONNECTION_MEMORY);
  const available = Math.max(0, Math.min(openFiles - OTHER_FILES, affordable));
  const admin = Math.max(4, Math.min(ADMIN_CONNECTIONS, Math.floor(available / 4)));
  const others = Math.max(4, Math.min(config.maxConnections, available - admin));
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
    },
    // Internal services share few addresses, and authenticate.
    admin: { ...common, maxConnections: admin, maxConnectionsPerAddress: admin },
  };
}

/** What a container needs whose service may have this many connections, bytes. */
export function memoryFor(maxConnections: number): number {
  return OTHER_MEMORY + MAX_PENDING_BODY_BYTES * BODY_WEIGHT + (maxConnections + ADMIN_CONNECTIONS) * CONNECTION_MEMORY;
}
