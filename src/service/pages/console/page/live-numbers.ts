/** Returns when this instance started, in ms; 0 if it consists of several workers. */
export function startOf(live: Live): number {
  return 1000 * total(live, "process_start_time_seconds");
}

export type Live = {
  readonly now: number;
  readonly storeResponds: boolean;
  readonly ringLost: boolean;
  readonly feed: { readonly ageMs?: number; readonly watchers: number };
  readonly keys: readonly LiveKey[];
  readonly metrics: readonly {
    readonly name: string;
    readonly values: readonly {
      readonly value: number;
      readonly labels: Readonly<Record<string, string | number>>;
      readonly metricName?: string;
    }[];
  }[];
};

export type LiveKey = {
  readonly kind: string;
  readonly kid: string;
  readonly alg: string;
  readonly state: string;
  readonly since: number;
  readonly next?: { readonly step: "sign" | "leave"; readonly from: number };
};

export type Sample = {
  readonly at: number;
  readonly refreshes: number;
  readonly latency: Latency | undefined;
};
type Latency = { readonly p50: number; readonly p99: number };

const valuesOf = (live: Live, name: string) => live.metrics.find((metric) => metric.name === name)?.values ?? [];

export function total(live: Live, name: string): number {
  return valuesOf(live, name).reduce((sum, { value }) => sum + value, 0);
}

/** Returns the values of a metric by one of its labels, the highest first. */
export function byLabel(live: Live, name: string, label: string): readonly (readonly [string, number])[] {
  const counts = new Map<string, number>();
  for (const { labels, value } of valuesOf(live, name)) {
    const key = String(labels[label] ?? "");
    counts.set(key, (counts.get(key) ?? 0) + value);
  }
  return [...counts].filter(([, count]) => count > 0).sort(([, a], [, b]) => b - a);
}

/** Returns how long the refreshes between two readings took, in ms; undefined if there were none. */
export function latencyBetween(before: Live, after: Live): Latency | undefined {
  const [old, now] = [bucketsOf(before), bucketsOf(after)];
  const buckets = [...now].map(([le, count]) => [le, count - (old.get(le) ?? 0)] as const).sort(([a], [b]) => a - b);
  const count = buckets.at(-1)?.[1] ?? 0;
  if (count <= 0) return undefined;
  return { p50: quantile(buckets, count * 0.5), p99: quantile(buckets, count * 0.99) };
}

/** Returns the histogram of the refreshes' durations: the count of each bucket, by its upper bound in seconds. */
function bucketsOf(live: Live): Map<number, number> {
  const buckets = new Map<number, number>();
  for (const { metricName, labels, value } of valuesOf(live, "session_rpc_duration_seconds")) {
    if (metricName !== "session_rpc_duration_seconds_bucket" || labels.method !== "Refresh") continue;
    const le = labels.le === "+Inf" ? Number.POSITIVE_INFINITY : Number(labels.le);
    buckets.set(le, (buckets.get(le) ?? 0) + value);
  }
  return buckets;
}

/** Estimates a quantile within its bucket, as Prometheus does. */
function quantile(buckets: readonly (readonly [number, number])[], rank: number): number {
  let [below, countBelow] = [0, 0];
  for (const [le, count] of buckets) {
    if (count >= rank) {
      if (le === Number.POSITIVE_INFINITY) return below * 1000;
      const share = count === countBelow ? 1 : (rank - countBelow) / (count - countBelow);
      return (below + (le - below) * share) * 1000;
    }
    [below, countBelow] = [le, count];
  }
  return below * 1000;
}
