import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";

/** Formats a time in a message; returns an empty text if there is none. */
export const shownAt = (time: Timestamp | undefined, show: (ms: number) => string) =>
  time === undefined ? "" : show(timestampMs(time));

/** Formats a time in a message in UTC, to the millisecond; returns an empty text if there is none. */
export const isoText = (time: Timestamp | undefined) => shownAt(time, (ms) => new Date(ms).toISOString());

/** Formats a duration in its largest unit. */
export function span(ms: number, round: (count: number) => number = Math.floor): string {
  const s = Math.max(0, round(ms / 1000));
  if (s < 120) return `${s}s`;
  if (s < 7200) return `${round(s / 60)}m`;
  return s < 172_800 ? `${round(s / 3600)}h` : `${round(s / 86_400)}d`;
}

/** Formats an age: `5m ago`, `in 14d`. A future time is rounded, so that a lifetime of 14 days is not shown as 13 days at its start. */
export function relative(atMs: number, nowMs: number): string {
  return atMs > nowMs ? `in ${span(atMs - nowMs, Math.round)}` : `${span(nowMs - atMs)} ago`;
}

/** Formats a time in UTC, to the second, and its distance from now. */
export function moment(atMs: number, nowMs: number): string {
  return `${new Date(atMs).toISOString().replace(/\.\d+Z$/, "Z")} (${relative(atMs, nowMs)})`;
}
