/** What one of each thing costs: measured by `npm run capacity -- --measure`, which prints this table for the machine it runs on. */

export type Costs = {
  /** CPU time of an instance, µs. */
  readonly instance: {
    readonly refresh: number;
    readonly creation: number;
    readonly ending: number;
    /** The same ending, received as a hint and read from the log by each instance (src/store/redis/log-reader.ts). */
    readonly reading: number;
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
    /** The same ending, published to one instance and read by it. */
    readonly reading: number;
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
  instance: { refresh: 202, creation: 340, ending: 238, reading: 142, message: 146, rest: 16_135 },
  redis: { refresh: 44, creation: 119, ending: 96, reading: 7, rest: 4_400, restOfCluster: 23_797 },
  bytes: { refresh: 1_319, refreshAtRedis: 424, message: 130 },
  memory: { session: 858 },
};
