import { processorTime, steadyClock, turns } from "../../platform/clock/turns.ts";
import type { Config } from "../config/config.ts";
import type { Logger } from "../observability/logger.ts";
import type { Metrics } from "../observability/metrics.ts";
import { signalReports } from "../observability/reports.ts";
import { exposeSignals } from "../observability/state-metrics.ts";
import type { Audit } from "../session/audit.ts";
import { RevocationFeed } from "../session/feed/feed.ts";
import type { SessionStore } from "../session/ports.ts";
import { systemClock } from "../session/time.ts";
import { startDelivery } from "../signals/delivery/start-delivery.ts";
import type { SignClaims } from "../signals/kinds/context.ts";
import { EVENT_TOKEN_TYPE } from "../signals/kinds/ssf.ts";
import { overseeSubscriptions } from "../signals/manage.ts";
import type { StoreWithSignals } from "../signals/ports.ts";
import { sealAnew } from "../signals/seal-anew.ts";
import { createSender } from "../signals/send/sender.ts";
import type { PollerDeps } from "../signals/streams/poller.ts";
import { createLossAnnouncer } from "../signals/streams/stream-events.ts";
import type { KeyRing } from "../tokens/key-ring.ts";
import type { Entropy } from "../tokens/random.ts";
import { createSecretSeal } from "../tokens/sealed-secret.ts";
import { createClaimsSigner } from "../tokens/signed-claims.ts";
import type { FollowedFiles } from "./follow-files.ts";

export function openFeed(store: SessionStore, entropy: Pick<Entropy, "text">, log: Logger): RevocationFeed {
  const onError = (err: unknown) =>
    log.error(
      { event: "feed_unreadable", err },
      "the revocation log cannot be read: the feed is silent until it can be",
    );
  const clocks = { clock: steadyClock, ranMs: () => turns.ranMs(), cpuMs: processorTime };
  return new RevocationFeed({ store, ...clocks, instance: entropy.text(12), onError });
}

type SignalParts = {
  readonly config: Config;
  readonly files: Pick<FollowedFiles, "ring" | "eventKeys">;
  readonly entropy: Entropy;
  readonly issuer: string;
  readonly log: Logger;
  readonly audit: Audit;
};

type Signals = {
  readonly management: PollerDeps;
  start(): void;
  /** Sends no further signals from now on. */
  beginStop(): void;
  /** Resolves when the last signals have been sent or have failed. */
  close(): Promise<void>;
};

/** How long a receiver may take to respond, in ms. A shorter SHUTDOWN_TIMEOUT counts as well, since the process ends after that time. */
const MAX_SEND_MS = 10_000;
const MIN_SEND_MS = 1_000;
/**
 * How often unfinished work of killed instances is completed, and secrets under an earlier key are encrypted again, in ms. This is frequent
 * compared with the life of a retired key.
 */
const MAINTENANCE_MS = 60_000;

/** Returns undefined if SIGNALS is off. */
export function openSignals(
  store: StoreWithSignals,
  metrics: Pick<Metrics, "signalSent" | "gauge">,
  parts: SignalParts,
): Signals | undefined {
  const { config, files, entropy, issuer, audit } = parts;
  if (!config.signals) return undefined;
  const { log, subscriptions } = store.signals;
  const targets = { allowPrivate: config.signalsAllowPrivate };
  const seal = createSecretSeal(files.ring);
  const reports = signalReports(parts.log, metrics);
  exposeSignals(metrics, () => overseeSubscriptions({ subscriptions, log, store }));
  const deadlineMs = Math.min(MAX_SEND_MS, Math.max(MIN_SEND_MS, config.shutdownTimeoutMs));
  const sending = {
    issuer,
    signClaims: signerOf(files),
    openSecret: seal.open,
    sender: createSender({ ...targets, deadlineMs }),
    wallClock: systemClock,
    events: reports,
  };
  const events = announcing(reports, createLossAnnouncer({ ...sending, subscriptions }, steadyClock));
  const holder = Buffer.from(entropy.text(12), "base64url").toString("hex");
  const deps = {
    ...sending,
    events,
    log,
    subscriptions,
    holder,
    store,
    clock: steadyClock,
    fraction: entropy.fraction,
  };
  let stopDelivery: (() => Promise<void>) | undefined;
  let maintenance: NodeJS.Timeout | undefined;
  let stopped: Promise<void> | undefined;
  const beginStop = () => {
    clearInterval(maintenance);
    stopped ??= stopDelivery?.().catch(events.onFailure);
  };
  return {
    management: {
      ...sending,
      signingAlgs: () => signingAlgsOf(files),
      log,
      store,
      // A receiver that polls gives up events itself.
      reports: { ...events, onGivenUp: reports.onGivenUp },
      subscriptions,
      targets,
      audit,
      seal: seal.seal,
    },
    start() {
      stopDelivery = startDelivery(deps);
      const maintain = () => {
        void sealAnew(subscriptions, seal).catch(events.onFailure);
        void subscriptions.repair().catch(events.onFailure);
      };
      maintain();
      maintenance = setInterval(maintain, MAINTENANCE_MS).unref();
    },
    beginStop,
    async close() {
      beginStop();
      await stopped;
    },
  };
}

/** Returns reports that also announce losses to the receiver. */
function announcing(reports: ReturnType<typeof signalReports>, announceLoss: ReturnType<typeof createLossAnnouncer>) {
  const onLoss = (subscription: string, count: number) => {
    reports.onLoss(subscription, count);
    announceLoss(subscription, "lost");
  };
  const onGivenUp = (subscription: string, count: number) => {
    reports.onGivenUp(subscription, count);
    announceLoss(subscription, "given_up");
  };
  return { ...reports, onLoss, onGivenUp };
}

/** By default the RSA keys, if there are any, sign security event tokens, and the key ring signs all other tokens. */
function signerOf({ ring, eventKeys }: SignalParts["files"]): SignClaims {
  const signByRing = createClaimsSigner(ring);
  return (typ, claims, alg) => {
    const isForRsa = alg === undefined ? typ === EVENT_TOKEN_TYPE : alg === "RS256";
    if (isForRsa && eventKeys !== undefined) return eventKeys.current.sign(typ, claims);
    if (alg !== undefined && alg !== ringAlgOf(ring)) throw new Error(`no key signs by ${alg}`);
    return signByRing(typ, claims);
  };
}

/** Returns the algorithm by which the key ring signs now. */
function ringAlgOf({ current }: KeyRing): string {
  return current.states.find(({ kind, state }) => kind === "signing" && state === "signing")?.alg ?? "";
}

function signingAlgsOf({ ring, eventKeys }: SignalParts["files"]): readonly string[] {
  return [...new Set([ringAlgOf(ring), ...(eventKeys === undefined ? [] : ["RS256"])])];
}
