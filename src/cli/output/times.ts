/** Times and ages for people. */

/** How long something takes or has been, in its largest unit. */
export function span(ms: number): string {
  const s = Math.max(0, Math.floor(ms / 1000));
  if (s < 120) return `${s}s`;
  if (s < 7200) return `${Math.floor(s / 60)}m`;
  return s < 172_800 ? `${Math.floor(s / 3600)}h` : `${Math.floor(s / 86_400)}d`;
}

/** `5m ago`, `in 14d`. */
export function relative(atMs: number, nowMs: number): string {
  return atMs > nowMs ? `in ${span(atMs - nowMs)}` : `${span(nowMs - atMs)} ago`;
}

/** The time itself, UTC to the second, and how far away it is. */
export function moment(atMs: number, nowMs: number): string {
  return `${new Date(atMs).toISOString().replace(/\.\d+Z$/, "Z")} (${relative(atMs, nowMs)})`;
}
