/**
 * The store on Redis. A step of one session is one script on the keys of one partition (scripts.ts, lua/), in one round trip; what is about
 * many runs several. The modules that this file puts together decode the replies; connection/connection.ts handles connections that fail.
 */
import { DEFAULT_RETENTION_MS, type StoreWithSignals } from "../../signals/ports.ts";
import { createAttached } from "./attached.ts";
import { channelOf } from "./checks/permissions.ts";
import { createRedisConnections, type RedisConnections } from "./connection/connection.ts";
import { subscribe } from "./connection/subscription.ts";
import { createCreation } from "./create.ts";
import { createSubjectEnds } from "./end-all.ts";
import { createEndings } from "./endings.ts";
import { createEvents } from "./events.ts";
import { Expiry } from "./expiry.ts";
import { createForgetting } from "./forget.ts";
import { createLists } from "./lists.ts";
import { createLogReader } from "./log-reader.ts";
import { createReplicas, type Replicas } from "./replicas.ts";
import { ScriptRunner, type ScriptRunnerOptions } from "./script-runner.ts";
import { createSessionSteps } from "./session-steps.ts";
import { createSignalLog } from "./signal-log.ts";
import { createSubscriptions } from "./subscriptions.ts";
import { createUpstream } from "./upstream.ts";

export type RedisStoreOptions = ScriptRunnerOptions & {
  /** How long an ended session is remembered, in ms. It is at least the longest life of an access token. */
  readonly markerLifeMs: number;
  /** How long the signal log keeps signals that a subscription has not read, in ms. Default: a day. */
  readonly signalsRetentionMs?: number;
};

/** Connects to Redis, and waits for it as long as for one command. @throws StoreRefused if Redis responds but must not be used */
export async function createRedisStore(options: RedisStoreOptions): Promise<StoreWithSignals> {
  const connections = createRedisConnections(options.target, options.commandTimeoutMs, options.log);
  const runner = new ScriptRunner(options, connections.connect());
  const replicas = createReplicas(options, connections, runner.client);
  const store = composeStore(options, connections, runner, replicas);
  try {
    await runner.start(replicas.ready);
    return store;
  } catch (error) {
    await store.close();
    throw error;
  }
}

function composeStore(
  options: RedisStoreOptions,
  connections: RedisConnections,
  runner: ScriptRunner,
  replicas: Replicas,
): StoreWithSignals {
  const { acknowledge } = replicas;
  const { markerLifeMs, reuseIntervalMs, signalsRetentionMs = DEFAULT_RETENTION_MS } = options;
  const subscription = subscribe(runner.client, connections, channelOf(options.target));
  const expiry = new Expiry(runner, markerLifeMs);
  const ends = createSubjectEnds(runner, acknowledge, markerLifeMs);
  const endings = createEndings(runner, acknowledge, markerLifeMs, ends);
  const log = createSignalLog(runner, signalsRetentionMs);
  return {
    ...createSessionSteps({ runner, acknowledge, reuseIntervalMs, markerLifeMs }),
    ...endings,
    ...createLists(runner),
    ...createUpstream(runner, acknowledge),
    ...createEvents(runner),
    ...createCreation(runner, acknowledge, markerLifeMs, endings.endOwned),
    endAll: ends.endAll,
    forget: createForgetting(runner, acknowledge, ends.finish),
    expire: () => expiry.step(),
    revocations: createLogReader(runner, ends.finish),
    onRevocation: subscription.add,
    ...createAttached(runner, acknowledge, endings.endOwned),
    onAttachedEnd: subscription.addHandOver,
    signals: { log, subscriptions: createSubscriptions(runner, acknowledge, log) },
    ...runner.time,
    async ping() {
      await runner.ping();
      replicas.check();
    },
    async close() {
      subscription.close();
      replicas.close();
      runner.close();
      connections.close();
    },
  };
}
