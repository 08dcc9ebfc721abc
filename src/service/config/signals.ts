/** The settings of signals, which notify receivers of the ends of sessions. */
import type { Read } from "./reader.ts";
import { DAY_MS, duration, oneOf, plainUrl, readableFile } from "./values.ts";

const MINUTE_MS = 60_000;

export function readSignals(read: Read) {
  return {
    signals: read("SIGNALS", oneOf("on", "off"), "off" as const) === "on",
    /** How long signals that a subscription has not read are kept, in ms. */
    signalsRetentionMs: read("SIGNALS_RETENTION", duration(MINUTE_MS, 30 * DAY_MS), DAY_MS),
    /** Whether receivers may have private addresses and use http there. */
    signalsAllowPrivate: read("SIGNALS_ALLOW_PRIVATE", oneOf("on", "off"), "off" as const) === "on",
    /** The URL under which receivers reach the admin API; without it there are no streams of the Shared Signals Framework (SSF). */
    signalsUrl: read("SIGNALS_URL", plainUrl, undefined)?.replace(/\/$/, ""),
    /** How much time must pass between two verification events that a receiver requests for a stream, in ms; 0 for none. */
    signalsVerificationIntervalMs: read("SIGNALS_VERIFICATION_INTERVAL", duration(0, 60 * MINUTE_MS), 10_000),
    /** The file of RSA keys in PEM, which sign security event tokens instead of the key ring. */
    signalsRsaKeyFile: read("SIGNALS_RSA_KEY_FILE", readableFile, undefined),
  };
}
