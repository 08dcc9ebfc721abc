/** Limits on the resources of a listener that one client may use. docs/why/security.md explains them; test/attacks measures them. */

/** After this time, in ms, a connection is closed that sends nothing, an incomplete request head or an incomplete TLS handshake. */
const HEAD_TIMEOUT_MS = 10_000;
/** The time from the first to the last byte of a request, in ms. After that HTTP/1.1 responds 408, and HTTP/2 resets the stream. */
const REQUEST_TIMEOUT_MS = 20_000;
/** How long a client may read nothing while a response waits to be sent, in ms. */
export const WRITE_TIMEOUT_MS = 30_000;
/** How long a connection may stay without a request, in ms. Load balancers should close first; they usually do after 60 s. */
const KEEP_ALIVE_TIMEOUT_MS = 65_000;
/** How many pipelined requests may wait on an HTTP/1.1 connection; several have `MAX_HEAD_BYTES` together. One is handled at a time. */
export const MAX_PIPELINED = 32;
/** How many streams an HTTP/2 connection may have open. Clients assume this number before they have read our settings. */
export const MAX_STREAMS = 100;
/**
 * The size of a request head, in bytes. Beyond it HTTP/1.1 responds 431, and HTTP/2 resets the stream. Eight cookies of 4 KiB fit, which a
 * sibling domain may add to keep its victim's requests out. With a higher limit 10,000 unfinished heads would take too much memory.
 */
export const MAX_HEAD_BYTES = 32 * 1024;
/** How many header fields an HTTP/2 request may have. Browsers send every cookie as a field of its own. */
export const MAX_HEAD_FIELDS = 256;
/**
 * How many PING and SETTINGS frames an HTTP/2 connection may send in a second without requests that are served in between. Handling as many
 * takes a hundredth of a second or less. Replies that the client does not read are bounded by nghttp2: 1,000 of them end the connection.
 */
export const MAX_CONTROL_FRAMES = 1_000;
/** How many PING and SETTINGS frames each served request allows in addition. */
export const FRAMES_PER_REQUEST = 4;
/**
 * How many streams a connection may reset in a second before the end of their response: twice the number that it may have open. Each
 * request that is served allows another one.
 */
export const MAX_RESETS = 200;
/**
 * The same for the connection of a proxy, which carries the requests of many clients. A proxy has limits of its own for each of them; this
 * one keeps those who cancel from taking the whole process.
 */
export const MAX_PROXY_RESETS = 10 * MAX_RESETS;
/**
 * The limit of nghttp2, at once and in a second, if there is no proxy. It does not know which requests were served, so `MAX_RESETS` is the
 * limit for attacks.
 */
export const NGHTTP2_RESETS = 1_000;
/** How many bytes the request bodies that are still arriving may take in memory. Above this limit the oldest such request is aborted. */
export const MAX_PENDING_BODY_BYTES = 128 * 1024 * 1024;
/** How many bytes HTTP/2 requests may hold while their clients do not take the responses. Above this limit the oldest are cut. */
export const MAX_UNREAD_BYTES = 64 * 1024 * 1024;
/** How many bytes of a request are still read after its response has been sent. */
export const MAX_LEFTOVER_BYTES = 1024 * 1024;

/** The part of all connections that one address may hold, if they do not all come from one proxy. */
export const ADDRESS_SHARE = 0.75;

export type ListenerLimits = {
  readonly maxConnections: number;
  /** The number of open connections of one IPv4 address or one IPv6 /64. */
  readonly maxConnectionsPerAddress: number;
  /**
   * Returns whether requests to a path are refused without an authentic credential. HTTP/2 requests to other paths, and refused requests,
   * are limited by address (unauthenticated-requests.ts). Undefined switches this limit off, because all clients behind a proxy share its
   * address.
   */
  readonly needsCredential: ((path: string) => boolean) | undefined;
  /**
   * Returns whether an address is that of a proxy. Its HTTP/2 connections carry the requests of many clients, so more of
   * their streams may be reset (MAX_PROXY_RESETS). Undefined if there is no proxy.
   */
  readonly isProxy: ((address: string) => boolean) | undefined;
  /** The number of requests whose bodies are still arriving. */
  readonly maxPendingBodies: number;
  readonly headTimeoutMs: number;
  /** The time limit of a request in ms; Infinity if the handlers decide how long a request may take. */
  readonly requestTimeoutMs: number;
  readonly writeTimeoutMs: number;
  readonly keepAliveTimeoutMs: number;
  /** How long any request may wait for this process to accept its connection (late-connections.ts), in ms. */
  readonly maxWaitMs: number;
};

export const DEFAULT_LIMITS: ListenerLimits = {
  maxConnections: 10_000,
  maxConnectionsPerAddress: 10_000 * ADDRESS_SHARE,
  needsCredential: undefined,
  isProxy: undefined,
  maxPendingBodies: 2_000,
  headTimeoutMs: HEAD_TIMEOUT_MS,
  requestTimeoutMs: REQUEST_TIMEOUT_MS,
  writeTimeoutMs: WRITE_TIMEOUT_MS,
  keepAliveTimeoutMs: KEEP_ALIVE_TIMEOUT_MS,
  maxWaitMs: Number.POSITIVE_INFINITY,
};
