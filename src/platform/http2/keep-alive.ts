/** How a connection that is silent is found alive, or dead. */
export interface KeepAliveOptions {
  /**
   * How long a stream may be silent, in milliseconds, before a PING checks whether the connection is alive. A connection that was silent
   * for longer gets a PING before a request is sent on it. Default: no pings.
   */
  readonly pingIntervalMs?: number;
  /**
   * The time limit for opening a connection, and for the acknowledgement of a PING, in milliseconds. If the limit is exceeded, the calls on
   * the connection fail. Default: 15,000. A further connection to the same server has a second.
   */
  readonly pingTimeoutMs?: number;
  /** Whether PINGs are sent even while no stream is open. Default: false. */
  readonly pingIdleConnection?: boolean;
  /** How long a connection without streams is kept, in milliseconds. Default: 15 minutes. */
  readonly idleConnectionTimeoutMs?: number;
}

export type KeepAlive = Required<KeepAliveOptions>;
