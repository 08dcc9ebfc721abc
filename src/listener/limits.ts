/** What one client may take of a listener. docs/security.md states these limits; test/attacks measures them. */

/** A connection that sends nothing, an incomplete request head, an incomplete TLS handshake: closed after this, ms. */
export const HEAD_TIMEOUT_MS = 10_000;
/** From the first byte of a request to the last of its body, ms. HTTP/1.1 responds 408; HTTP/2 resets the stream. */
export const REQUEST_TIMEOUT_MS = 20_000;
/** How long a client may take nothing of a response that waits for it, ms. */
export const WRITE_TIMEOUT_MS = 30_000;
/** How long a connection may stay without a request, ms. Load balancers (60 s as a rule) are to close first. */
export const KEEP_ALIVE_TIMEOUT_MS = 65_000;
/** Requests that wait for the one before them on an HTTP/1.1 connection. They are handled one after another. */
export const MAX_PIPELINED = 32;
/** Open streams of an HTTP/2 connection: what clients assume before they have read our settings. */
export const MAX_STREAMS = 100;
/**
 * A request head, bytes. HTTP/1.1 responds 431; HTTP/2 resets the stream. A sibling domain can add cookies of 4 KiB each, and so keep its
 * victim's requests out: eight of them fit. More would let 10,000 unfinished heads take more memory than a service has.
 */
export const MAX_HEAD_BYTES = 32 * 1024;
/** Header fields of an HTTP/2 request. Browsers send every cookie as a field of its own. */
export const MAX_HEAD_FIELDS = 256;
/** PING and SETTINGS frames and resets of streams that an HTTP/2 connection may send in a second: all its streams, twice. */
export const MAX_CONTROL_FRAMES = 200;
/** Streams that a client may reset at once: all that it has open, twice. After that, so many a second. */
export const MAX_RESETS = 200;
export const RESETS_PER_SECOND = 33;
/** Request bodies that are still on their way, in memory, bytes: beyond it the oldest such request is cut. */
export const MAX_PENDING_BODY_BYTES = 128 * 1024 * 1024;
/** How much of a request is still read when its response has been given, bytes. */
export const MAX_LEFTOVER_BYTES = 1024 * 1024;

/** How large a part of the connections one address may hold, where not all of them come from one proxy. */
export const ADDRESS_SHARE = 0.75;

export type ListenerLimits = {
  /** Open connections. */
  readonly maxConnections: number;
  /** Open connections of one IPv4 address or one IPv6 /64. */
  readonly maxConnectionsPerAddress: number;
  /** Requests whose bodies are still on their way. */
  readonly maxPendingBodies: number;
  readonly headTimeoutMs: number;
  /** Infinity where the handlers decide how long a request may take. */
  readonly requestTimeoutMs: number;
  readonly writeTimeoutMs: number;
  readonly keepAliveTimeoutMs: number;
  /** How long any request may wait for this process to accept its connection (late-connections.ts), ms. */
  readonly maxWaitMs: number;
};

export const DEFAULT_LIMITS: ListenerLimits = {
  maxConnections: 10_000,
  maxConnectionsPerAddress: 10_000 * ADDRESS_SHARE,
  maxPendingBodies: 2_000,
  headTimeoutMs: HEAD_TIMEOUT_MS,
  requestTimeoutMs: REQUEST_TIMEOUT_MS,
  writeTimeoutMs: WRITE_TIMEOUT_MS,
  keepAliveTimeoutMs: KEEP_ALIVE_TIMEOUT_MS,
  maxWaitMs: Number.POSITIVE_INFINITY,
};
