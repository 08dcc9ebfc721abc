import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import { ClientKind, RevocationReason } from "../../../../../gen/auth/admin/v1/session_admin_pb.ts";
import { browserOf } from "../../../../platform/net/user-agent.ts";

const UNITS = [
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
] as const;
const RELATIVE = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
const ABSOLUTE = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

export const msOf = (time: Timestamp | undefined): number | undefined => time && timestampMs(time);

export function ago(ms: number, now = Date.now()): string {
  const difference = ms - now;
  for (const [unit, size] of UNITS) {
    if (Math.abs(difference) >= size) return RELATIVE.format(Math.round(difference / size), unit);
  }
  return difference > 0 ? "in less than a minute" : "just now";
}

export const absolute = (ms: number): string => ABSOLUTE.format(ms);

/** Replaces control characters, and those that reorder or hide text, by visible escapes, as the command line does. */
export const visible = (text: string): string =>
  text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu, (found) => `\\u{${(found.codePointAt(0) ?? 0).toString(16)}}`);

/** Formats a span such as `12 days` or `40 seconds`. */
export function span(ms: number): string {
  for (const [unit, size] of [...UNITS, ["second", 1000] as const]) {
    const count = Math.floor(ms / size);
    if (count >= 1) return `${count} ${unit}${count === 1 ? "" : "s"}`;
  }
  return "0 seconds";
}

type Device = { readonly userAgent: string; readonly displayName: string };

/** Describes a device by its user agent, or else by the name that the login gave. An unknown user agent is only shortened. */
export function deviceOf({ userAgent, displayName }: Device = { userAgent: "", displayName: "" }): string {
  const browser = browserOf(userAgent);
  if (browser !== undefined) return browser;
  const text = userAgent || displayName || "Unknown device";
  return text.length > 48 ? `${text.slice(0, 47)}…` : text;
}

const KINDS: Readonly<Record<ClientKind, string>> = {
  [ClientKind.UNSPECIFIED]: "",
  [ClientKind.BROWSER]: "browser",
  [ClientKind.MOBILE]: "mobile",
  [ClientKind.DESKTOP]: "desktop",
  [ClientKind.CLI]: "command line",
  [ClientKind.AGENT]: "agent",
  [ClientKind.TV]: "TV",
};

export const kindOf = (client: { readonly kind: ClientKind } | undefined): string =>
  client ? (KINDS[client.kind] ?? "") : "";

/** Returns the name that the login gave the device, if `deviceOf` returns another text. */
export const nameBeside = (device: Device | undefined): string =>
  device === undefined || device.userAgent === "" ? "" : device.displayName;

const REASONS: Readonly<Record<RevocationReason, string>> = {
  [RevocationReason.UNSPECIFIED]: "ended",
  [RevocationReason.LOGOUT]: "signed out by its user",
  [RevocationReason.REVOKED_BY_OWNER]: "ended by its user from another device",
  [RevocationReason.REVOKED_OTHERS]: "ended by its user, who ended all other devices",
  [RevocationReason.REVOKED_BY_ADMIN]: "ended by an operator or a service",
  [RevocationReason.REVOKED_SUBJECT]: "ended with all sessions of the user, by an operator or a service",
  [RevocationReason.SESSION_LIMIT]: "ended to make room: the user had too many sessions",
  [RevocationReason.REPLACED]: "replaced by a later login of the same browser",
  [RevocationReason.REUSE]: "ended for safety: a refresh token was used twice, as a stolen one would be",
  [RevocationReason.EXPIRED]: "expired",
  [RevocationReason.UPSTREAM_LOGOUT]: "ended by the identity provider that it came from",
  [RevocationReason.ACTOR_ENDED]: "ended with the session of its actor",
};

export const whyEnded = (reason: RevocationReason): string => REASONS[reason] ?? "ended";

/** Names the state of a session's device key. The sessions of a service without device binding have no key. */
export function bindingOf(binding: { readonly bound: boolean } | undefined): string {
  if (binding === undefined) return "not bound";
  return binding.bound ? "bound" : "registered";
}
