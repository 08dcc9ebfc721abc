/** The cost of each operation, measured by `npm run capacity -- --measure`, which prints this table for the machine it runs on. */

export type Costs = {
  /** The CPU time that an instance needs for each operation, in µs. */
  readonly instance: {
    readonly refresh: number;
    readonly creation: number;
    readonly ending: number;
    /**
     * The cost that one ended session causes at every other instance: the instance is notified, and reads the revocation from the log
     * (src/service/store/redis/log-reader.ts).
     */
    readonly reading: number;
    /** The cost of delivering one message of the feed to one watcher of 200, while sessions end. */
    readonly message: number;
    /** The cost of each second in which the instance receives no requests. */
    readonly rest: number;
  };
  /** The CPU time that all nodes of Redis together need for each operation, in µs. */
  readonly redis: {
    readonly refresh: number;
    readonly creation: number;
    readonly ending: number;
    /** The cost that one ended session causes for each other instance, which is notified and reads the revocation from the log. */
    readonly reading: number;
    /** The cost of one second of one instance that receives no requests and only reads the revocation log. */
    readonly rest: number;
    /**
     * The cost of one second of one instance that receives no requests, on a cluster. It is higher there, because reading the revocation
     * log needs a separate script for each of the 256 partitions.
     */
    readonly restOfCluster: number;
  };
  /** The bytes between client and instance, and between instance and Redis, in both directions together, without TLS, TCP and IP. */
  readonly bytes: { readonly refresh: number; readonly refreshAtRedis: number; readonly message: number };
  /** Bytes of memory in Redis. */
  readonly memory: { readonly session: number };
  /** On what these were measured. */
  readonly machine: string;
};

/** The costs on one machine. CPU times differ by a factor of two from machine to machine, so measure yours before you rely on a table. */
export const MEASURED: Costs = {
  instance: { refresh: 131, creation: 349, ending: 279, reading: 270, message: 19, rest: 13_894 },
  redis: { refresh: 37, creation: 115, ending: 124, reading: 3, rest: 4_151, restOfCluster: 23_757 },
  bytes: { refresh: 1_319, refreshAtRedis: 432, message: 130 },
  memory: { session: 437 },
  machine: "Redis 7.0, Node 26, two virtual cores, 2026-11-28 quiet",
};
