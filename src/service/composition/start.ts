import type { Config } from "../config/config.ts";
import type { LogCounts, Logger } from "../observability/logger.ts";
import { createMetrics, type Metrics } from "../observability/metrics.ts";
import { exposeState } from "../observability/state-metrics.ts";
import type { Telemetry } from "../observability/telemetry/start-telemetry.ts";
import { createSignInRecords, type SignInRecords } from "../pages/console/sign-ins.ts";
import { systemEntropy } from "../tokens/random.ts";
import type { WorkerParts } from "../workers/join.ts";
import { reportReady, reportSettings } from "./announce.ts";
import { createApis } from "./apis.ts";
import { openEventRecorder, openExpiry } from "./event-recorder.ts";
import { followFiles, openFiles } from "./follow-files.ts";
import { openFeed, openSignals } from "./open-feed.ts";
import { type Listeners, openListeners } from "./open-listeners.ts";
import { loadStore, openOverloadControl, openStore, waitForStore } from "./open-store.ts";
import { prepareDataDir } from "./secrets.ts";
import { startError } from "./start-error.ts";
import { createStop, type StopMode } from "./stop.ts";

export type Service = {
  readonly publicUrl: string;
  readonly adminUrl: string;
  /** Ends everything in order (stop.ts). If it is called again with "now", it stops waiting for clients to disconnect. */
  stop(mode: StopMode): Promise<void>;
};

type ProcessDeps = {
  readonly log: Logger;
  readonly logCounts?: LogCounts;
  /** Writes to standard output. */
  readonly out: (text: string) => void;
} & Partial<Pick<WorkerParts, "joinsOthers" | "ofAll" | "callSupervisor">>;

/**
 * Resolves when the service is ready and has reported that on `out`. While the store is not available, the listeners respond with
 * E503_UNAVAILABLE. @throws StartError
 */
export async function start(config: Config, deps: ProcessDeps): Promise<Service> {
  const { log, logCounts, out, joinsOthers = false, ofAll = (own) => own, callSupervisor } = deps;
  await prepareDataDir(config);
  const files = await openFiles(config);
  const entropy = systemEntropy();
  // The modules that requests need are loaded before anything is measured or served, because loading them blocks the event loop.
  await loadStore(config);
  const metrics = createMetrics(logCounts);
  const telemetry = await openTelemetry(config, metrics, log);
  const open = () => openStore(config, log, files.ring);
  // A worker that starts beside others opens its port only after its store. Until then the other workers get all connections.
  const early = joinsOthers ? await open() : undefined;
  if (early !== undefined) await waitForStore(early.store, log);
  const listeners = await openListeners(config, log, metrics);
  const urls = { publicUrl: listeners.public.url, adminUrl: listeners.admin.url };
  const issuer = config.issuer ?? `${listeners.public.scheme}://127.0.0.1:${listeners.public.port}`;
  reportSettings(config, issuer, files.ring.current.states, log);
  const opened = early ?? (await open().catch((error: unknown) => giveUp(error, () => closeAll(listeners))));
  const overload = openOverloadControl(config, log, metrics);
  const store = overload.limit(opened.store);
  const feed = openFeed(store, entropy, log);
  const stopFollowing = followFiles(files, feed, log);
  const events = openEventRecorder(config, { store: opened.store, log, metrics, entropy });
  const expiry = openExpiry(opened.store, events.audit, log);
  const signals = openSignals(opened.store, metrics, { config, files, entropy, issuer, log, audit: events.audit });
  const apis = createApis({
    config,
    files,
    log,
    metrics: ofAll(metrics),
    telemetry,
    audit: events.audit,
    entropy,
    issuer,
    store,
    storeKind: opened.kind,
    overload,
    feed,
    // Workers share the records of sign-ins, because the next request of a browser may reach another worker.
    consoleSignIns: (callSupervisor as SignInRecords | undefined) ?? createSignInRecords(Date.now),
    signals: signals?.management,
  });
  exposeState(metrics, { listeners, feed, ring: files.ring, opened, isReady: apis.isReady });
  listeners.public.serve(apis.publicHandler);
  listeners.admin.serve(apis.adminHandler);
  const stop = createStop(config, {
    listeners: [listeners.public, listeners.admin],
    onDrain: apis.drain,
    async onDrained() {
      apis.close();
      stopFollowing();
      listeners.stopFollowing();
      signals?.beginStop();
      await feed.close();
    },
    async onClosed() {
      await signals?.close();
      await expiry.close();
      await events.close();
      await store.close();
      await telemetry?.shutdown();
    },
  });

  await waitForStore(store, log).catch((error: unknown) => giveUp(error, () => stop("now")));
  signals?.start();
  apis.start();
  reportReady(out, config, { ...urls, store: opened.kind, docsKey: apis.docsKey });
  return { ...urls, stop };
}

async function closeAll(listeners: Listeners): Promise<void> {
  listeners.stopFollowing();
  await Promise.all([listeners.public.close(0), listeners.admin.close(0)]);
}

async function giveUp(error: unknown, close: () => Promise<void>): Promise<never> {
  await close();
  throw startError(error);
}

/** Loads the SDK only if it is configured. @throws StartError if the libraries, which are optional, are not installed */
async function openTelemetry(config: Config, metrics: Metrics, log: Logger): Promise<Telemetry | undefined> {
  if (config.telemetry === undefined) return undefined;
  try {
    const { startTelemetry } = await import("../observability/telemetry/start-telemetry.ts");
    return await startTelemetry({ config: config.telemetry, metrics, log });
  } catch (error) {
    throw startError(error, "OTEL_* variables ask for OpenTelemetry, an optional dependency that cannot be loaded");
  }
}
