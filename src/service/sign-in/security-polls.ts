/**
 * Polls transmitters for security events (RFC 8936). An event is acknowledged after its sessions have ended, so none is lost. Each instance
 * polls for itself: an event that several receive ends the same sessions, once.
 */
import { readFile } from "node:fs/promises";
import { setTimeout as wait } from "node:timers/promises";
import type { ProviderSettings, Transmitter } from "../config/providers.ts";
import { boundedFetch } from "./bounded-fetch.ts";
import type { AcceptEvent } from "./security-events.ts";

type Poll = NonNullable<Transmitter["poll"]>;

type Deps = {
  readonly providers: () => readonly ProviderSettings[];
  readonly accept: AcceptEvent;
  readonly log: Record<"info" | "warn", (fields: object, message: string) => void>;
  /** Is aborted when the service stops. */
  readonly stopping: AbortSignal;
};

type Refused = { readonly err: string; readonly description: string };

/** What one poll reports of the events that an earlier one brought. */
type Verdicts = {
  readonly ack: readonly string[];
  readonly setErrs: Readonly<Record<string, Refused>>;
};

const NO_VERDICTS: Verdicts = { ack: [], setErrs: {} };
/** How many events a response may have. With tokens of the size that a push may have, it stays below the limit of a response. */
const MAX_EVENTS = 10;
/** How long a transmitter may hold a poll, in ms. */
const TIMEOUT_MS = 60_000;
/** The pause after a poll without new events, in ms; and how often changed settings are looked for. Not every transmitter holds polls. */
const PAUSE_MS = 1_000;
const MAX_DOUBLINGS = 6;

/** Polls for all transmitters that the settings name, also after these have changed, until the service stops. */
export function pollEvents(deps: Deps): void {
  const polled = new WeakSet<Transmitter>();
  const look = () => {
    for (const provider of deps.providers()) {
      const { securityEvents } = provider;
      if (securityEvents?.poll === undefined || polled.has(securityEvents)) continue;
      polled.add(securityEvents);
      void pollOne(deps, provider, securityEvents.poll);
    }
  };
  look();
  const timer = setInterval(look, PAUSE_MS);
  timer.unref();
  deps.stopping.addEventListener("abort", () => clearInterval(timer));
}

async function pollOne(deps: Deps, provider: ProviderSettings, poll: Poll): Promise<void> {
  const { log, stopping } = deps;
  let verdicts = NO_VERDICTS;
  let failures = 0;
  while (!stopping.aborted && deps.providers().includes(provider)) {
    const polled = await pollOnce(deps, poll, verdicts, failures > 0);
    if (stopping.aborted) return;
    verdicts = polled.verdicts;
    if (polled.ok && failures > 0) {
      log.info({ event: "security_poll_recovered", provider: provider.name }, "security_poll_recovered");
    } else if (!polled.ok && failures === 0) {
      const { reason } = polled;
      log.warn({ event: "security_poll_failed", provider: provider.name, reason }, "security_poll_failed");
    }
    failures = polled.ok ? 0 : failures + 1;
    const longest = PAUSE_MS * 2 ** Math.min(failures, MAX_DOUBLINGS);
    // The pauses of instances differ, so that they do not all poll at the same time after an outage.
    const ms = polled.ok ? polled.pauseMs : longest * (1 - Math.random() / 2);
    if (ms > 0) await wait(ms, undefined, { signal: stopping, ref: false }).catch(() => {});
  }
}

type Polled = { readonly verdicts: Verdicts } & (
  | { readonly ok: true; readonly pauseMs: number }
  | { readonly ok: false; readonly reason: string }
);

/**
 * @param verdicts on the events of earlier polls. They are returned again if the transmitter has not received them
 * @param hurries whether the transmitter is to respond at once, as after a failure
 */
async function pollOnce({ accept, stopping }: Deps, poll: Poll, verdicts: Verdicts, hurries: boolean): Promise<Polled> {
  const received = await request(poll, { ...verdicts, returnImmediately: hurries }, stopping).catch((error: unknown) =>
    reasonOf(error),
  );
  if (typeof received === "string") return { ok: false, verdicts, reason: received };
  const ack: string[] = [];
  const refused: [jti: string, Refused][] = [];
  let reason: string | undefined;
  for (const [jti, token] of received) {
    const accepted = await accept(token, undefined).catch((error: unknown) => ({ ok: false, error }) as const);
    if (accepted.ok) ack.push(jti);
    else if ("err" in accepted) refused.push([jti, { err: accepted.err, description: "refused" }]);
    // Without a verdict, the transmitter sends the event again.
    else reason = "error" in accepted ? reasonOf(accepted.error) : accepted.reason;
  }
  const own = { ack, setErrs: Object.fromEntries(refused) };
  if (reason !== undefined) return { ok: false, verdicts: own, reason };
  // A transmitter that does not heed the verdicts would be polled without end.
  const isNew = ([jti]: readonly [string, string]) =>
    !verdicts.ack.includes(jti) && !Object.hasOwn(verdicts.setErrs, jti);
  return { ok: true, verdicts: own, pauseMs: received.some(isNew) ? 0 : PAUSE_MS };
}

/** Returns the events, at most MAX_EVENTS, by their `jti`. */
async function request(
  { url, tokenFile }: Poll,
  wanted: Verdicts & { readonly returnImmediately: boolean },
  stopping: AbortSignal,
) {
  const token = (await readFile(tokenFile, "utf8")).trim();
  // The error of `fetch` would contain the token.
  if (!/^[\x20-\x7e]+$/.test(token)) throw new Error("poll_token_file holds no token");
  const response = await boundedFetch(url, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json", accept: "application/json" },
    redirect: "manual",
    body: JSON.stringify({ ...wanted, maxEvents: MAX_EVENTS }),
    signal: AbortSignal.any([stopping, AbortSignal.timeout(TIMEOUT_MS)]),
  });
  if (!response.ok) throw new Error(`status ${response.status}`);
  const { sets }: { readonly sets?: unknown } = Object(await response.json());
  const found = Object.entries(typeof sets === "object" && sets !== null ? sets : {});
  return found.filter((set): set is [string, string] => typeof set[1] === "string").slice(0, MAX_EVENTS);
}

const reasonOf = (error: unknown) => (error instanceof Error ? error.message : "unknown");
