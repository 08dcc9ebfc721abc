/** What one of each thing costs: measured by `npm run capacity -- --measure`, which prints this table for the machine it runs on. */

export type Costs = {
  /** CPU time of an instance, µs. */
  readonly instance: {
    readonly refresh: number;
    readonly creation: number;
    readonly ending: number;
    /** One message of the feed, delivered to one watcher. */
    readonly message: number;
    /** Each second, with nothing to do. */
    readonly rest: number;
  };
  /** CPU time of Redis, µs, of all its nodes together. */
  readonly redis: {
    readonly refresh: number;
    readonly creation: number;
    readonly ending: number;
    /** Each second, for one instance that reads the log and has nothing else to do. */
    readonly rest: number;
    /** The same on a cluster, where each of the 256 partitions is a script of its own. */
    readonly restOfCluster: number;
  };
  /** Bytes between client and instance, and between instance and Redis, both ways together, without TLS, TCP and IP. */
  readonly bytes: { readonly refresh: number; readonly refreshAtRedis: number; readonly message: number };
  /** Bytes of memory in Redis. */
  readonly memory: { readonly session: number };
};

/** CPU times differ by a factor of two from machine to machine: measure yours before you believe a table. */
export const MEASURED: Costs = {
  instance: { refresh: 121, creation: 250, ending: 200, message: 57, rest: 10_000 },
  redis: { refresh: 25, creation: 60, ending: 50, rest: 1_000, restOfCluster: 4_000 },
  bytes: { refresh: 2_000, refreshAtRedis: 900, message: 250 },
  memory: { session: 350 },
};
