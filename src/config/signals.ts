/** Settings of signals, which report the ends of sessions to receivers. */
import type { Read } from "./reader.ts";
import { DAY_MS, duration, oneOf, plainUrl, readableFile } from "./values.ts";

const MINUTE_MS = 60_000;

export function readSignals(read: Read) {
  return {
    signals: read("SIGNALS", oneOf("on", "off"), "off" as const) === "on",
    /** How long what a subscription has not read is kept. */
    signalsRetentionMs: read("SIGNALS_RETENTION", duration(MINUTE_MS, 30 * DAY_MS), DAY_MS),
    /** Whether receivers may have private addresses, and be reached there by http. */
    signalsAllowPrivate: read("SIGNALS_ALLOW_PRIVATE", oneOf("on", "off"), "off" as const) === "on",
    /** The URL under which receivers reach the admin API; without one there are no streams of SSF. */
    signalsUrl: read("SIGNALS_URL", plainUrl, undefined)?.replace(/\/$/, ""),
    /** RSA keys in PEM, which sign security event tokens in place of the key ring. */
    signalsRsaKeyFile: read("SIGNALS_RSA_KEY_FILE", readableFile, undefined),
  };
}
