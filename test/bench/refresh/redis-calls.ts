import { Redis } from "ioredis";

/** How often each command has run inside Redis, including commands of scripts (`INFO commandstats`). */
export type Calls = ReadonlyMap<string, number>;

export function watchCalls(port: number): { read(): Promise<Calls>; close(): void } {
  const redis = new Redis({ port, host: "127.0.0.1" });
  return {
    async read() {
      const lines = (await redis.info("commandstats")).matchAll(/^cmdstat_(\S+?):calls=(\d+)/gm);
      return new Map([...lines].map(([, name = "", calls]) => [name, Number(calls)]));
    },
    close: () => redis.disconnect(),
  };
}

/** Returns how often `command` ran between two readings. */
export function between(before: Calls, after: Calls, command: string): number {
  return (after.get(command) ?? 0) - (before.get(command) ?? 0);
}
