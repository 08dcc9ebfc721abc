/** How many connections each listener takes, so that together they never use up the files that the process may open. */
import { readFileSync } from "node:fs";
import type { Config } from "../config/config.ts";
import { type ListenerLimits, MAX_PENDING_BODY_BYTES } from "../listener/limits.ts";

/** Files that are no connections of clients: the store, the log, keys, those of the runtime. */
const OTHER_FILES = 64;
/** Connections that the admin API has for itself, whatever happens on the public one. */
const ADMIN_CONNECTIONS = 1_000;
const MAX_PENDING_BODIES = 2_000;
/** Where one address may hold no more than a share of the connections, how large it is. */
const ADDRESS_SHARE = 0.75;

type Limits = Pick<
  ListenerLimits,
  "maxConnections" | "maxConnectionsPerAddress" | "maxPendingBodies" | "requestTimeoutMs"
>;

/** @param openFiles what the process may open; undefined: not known */
export function listenerLimits(
  config: Pick<
    Config,
    "maxConnections" | "maxConnectionsPerAddress" | "maxBodyBytes" | "requestTimeoutMs" | "trustProxy"
  >,
  openFiles = Number.POSITIVE_INFINITY,
): { readonly public: Limits; readonly admin: Limits } {
  const available = Math.max(0, openFiles - OTHER_FILES);
  const admin = Math.max(4, Math.min(ADMIN_CONNECTIONS, Math.floor(available / 4)));
  const others = Math.max(4, Math.min(config.maxConnections, available - admin));
  const share = config.trustProxy > 0 ? 1 : ADDRESS_SHARE;
  const common = {
    maxPendingBodies: Math.max(
      16,
      Math.min(MAX_PENDING_BODIES, Math.floor(MAX_PENDING_BODY_BYTES / config.maxBodyBytes)),
    ),
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

/** How many files the process may open, or undefined where the system does not say. */
export function openFileLimit(): number | undefined {
  try {
    const limit = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8"))?.[1];
    return limit === undefined ? undefined : Number(limit);
  } catch {
    return undefined;
  }
}
