/** Times and ages for people. */

/** How long something takes or has been, in its largest unit. */
export function span(ms: number, round: (count: number) => number = Math.floor): string {
  const s = Math.max(0, round(ms / 1000));
  if (s < 120) return `${s}s`;
  if (s < 7200) return `${round(s / 60)}m`;
  return s < 172_800 ? `${round(s / 3600)}h` : `${round(s / 86_400)}d`;
}

/** `5m ago`, `in 14d`: what is ahead is rounded, so that a lifetime is right a moment after its start, too. */
export function relative(atMs: number, nowMs: number): string {
  return atMs > nowMs ? `in ${span(atMs - nowMs, Math.round)}` : `${span(nowMs - atMs)} ago`;
}

/** The time itself, UTC to the second, and how far away it is. */
export function moment(atMs: number, nowMs: number): string {
  return `${new Date(atMs).toISOString().replace(/\.\d+Z$/, "Z")} (${relative(atMs, nowMs)})`;
}
