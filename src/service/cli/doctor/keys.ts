/** Checks whether the key ring can be used, and how old its keys are. */
import type { Config } from "../../config/config.ts";
import { ringFindings } from "../../config/findings.ts";
import { DAY_MS } from "../../config/values.ts";
import { EventKeysFault, loadEventKeys } from "../../tokens/event-keys.ts";
import { KEY_KINDS, type KeyKind, KeyRingFault, type Ring } from "../../tokens/ring.ts";
import { readRing } from "../../tokens/ring-file.ts";
import { isSpent, PICK_UP_MS, type RingTimes } from "../../tokens/ring-steps.ts";
import type { Report } from "./finding.ts";

/** How long a key should be used at most, in ms. docs/tasks/rotate-keys.md advises a rotation every month. */
const MAX_USE_MS = 90 * DAY_MS;

export async function checkKeys(report: Report, config: Config, clock: () => number): Promise<void> {
  try {
    const ring = await readRing(config.keysFile);
    const now = clock();
    for (const kind of KEY_KINDS) checkKind(report, ring, kind, { ...config, pickUpMs: PICK_UP_MS }, now);
    for (const { found, remedy } of ringFindings(config, ring.signing)) report.warning(found, remedy);
    if (report.findings.length === 0) report.ok(`the keys of ${config.keysFile} are in use for less than 90 days`);
  } catch (error) {
    if (!(error instanceof KeyRingFault)) throw error;
    if (!error.absent) report.fault(error.message, "correct the file, or restore it from a backup");
    else if (config.redis !== undefined) report.fault(error.message, "session-service keys create");
    else report.ok(`there is no key ring at ${config.keysFile} yet; the first start makes one`);
  }
}

export async function checkEventKeys({ ok, fault }: Report, config: Config): Promise<void> {
  const { signals, signalsRsaKeyFile: path } = config;
  if (!signals || path === undefined) return;
  try {
    const { current } = await loadEventKeys(path, "operator");
    ok(`SIGNALS_RSA_KEY_FILE: ${path} has keys of RSA: ${current.jwks.length}`);
  } catch (error) {
    if (!(error instanceof EventKeysFault)) throw error;
    const remedy = "name RSA keys in PEM, such as `openssl genrsa 2048` makes, that only the service can read";
    fault(`SIGNALS_RSA_KEY_FILE: ${error.message}`, remedy);
  }
}

function checkKind(report: Report, ring: Ring, kind: KeyKind, times: RingTimes, now: number): void {
  const inUse = ring[kind].find(({ state }) => state === "signing");
  const days = Math.floor((now - (inUse?.since ?? now)) / DAY_MS);
  if (days * DAY_MS >= MAX_USE_MS) {
    report.warning(
      `the ${kind} key ${inUse?.kid} has been in use for ${days} days`,
      `session-service keys rotate ${kind}`,
    );
  }
  if (inUse !== undefined && inUse.since > now + PICK_UP_MS) {
    report.warning(`the ${kind} key ${inUse.kid} comes from the future`, "correct the clock of this machine (NTP)");
  }
  if (!ring[kind].some(({ state }) => state === "published")) {
    report.warning(`no ${kind} key is published to succeed the one in use`, `session-service keys rotate ${kind}`);
  }
  const spent = ring[kind].filter((key) => isSpent(kind, key, now, times));
  if (spent.length > 0) {
    report.warning(`${spent.length} ${kind} keys are kept that no token needs any more`, "session-service keys remove");
  }
}
