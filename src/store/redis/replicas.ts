/**
 * `REDIS_WAIT_REPLICAS`: an ending is acknowledged once so many replicas have it.
 *
 * WAIT holds up its connection, so it has one of its own: a small write there comes after the ending in the one
 * stream that replicas follow, and WAIT waits for it. Too few replicas: unavailable. What was ended stays ended.
 *
 * One WAIT at a time (per hash tag on a cluster, where tags have different masters): those who come meanwhile share
 * the next one. So many endings cost few WAITs, and while replicas are missing none pile up.
 */
import { once } from "node:events";
import type { RedisTarget } from "../../config/redis-url.ts";
import { StoreUnavailable } from "../../session/ports.ts";
import { connect, disconnect } from "./connection.ts";
import { translate } from "./failure.ts";

type Deps = { readonly target: RedisTarget; readonly waitReplicas: number; readonly commandTimeout: number };

export type Acknowledge = ((tag: string) => Promise<void>) & {
  /** Resolves when its connection stands. */
  readonly ready: Promise<unknown>;
  close(): void;
};

export function createAcknowledger({ target, waitReplicas, commandTimeout }: Deps): Acknowledge {
  if (waitReplicas === 0) return Object.assign(async () => {}, { ready: Promise.resolve(), close() {} });
  const client = connect(target, commandTimeout, { commandTimeout });
  client.on("error", () => {}); // told of by the main connection
  const waitFor = async (tag: string): Promise<void> => {
    const replies = await client
      .pipeline()
      .set(`${tag}w`, "", "PX", 1000)
      .wait(waitReplicas, Math.floor(commandTimeout * 0.8))
      .exec()
      .catch((error: unknown) => {
        throw translate(error);
      });
    const [[failed], [, replicas]] = replies as [[Error | null], [Error | null, number | undefined]];
    if (failed !== null) throw translate(failed);
    if ((replicas ?? 0) < waitReplicas) {
      throw new StoreUnavailable(`Redis: ${replicas ?? 0} of ${waitReplicas} replicas have acknowledged in time`);
    }
  };
  const turns = new Map<string, () => Promise<void>>();
  const acknowledge = (tag: string): Promise<void> => {
    const master = target.kind === "cluster" ? tag : "";
    const turn = turns.get(master) ?? inTurn(() => waitFor(tag));
    turns.set(master, turn);
    return turn();
  };
  return Object.assign(acknowledge, { ready: once(client, "ready").catch(() => {}), close: () => disconnect(client) });
}

/** Runs one at a time. A call joins the run that begins next, never one that began before it. */
function inTurn(run: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined;
  let next: Promise<void> | undefined;
  const start = (): Promise<void> => {
    next = undefined;
    running = run().finally(() => {
      running = undefined;
    });
    return running;
  };
  return () => {
    if (running === undefined) return start();
    next ??= running.then(start, start);
    return next;
  };
}
