import type { FeedState } from "../../session/feed.ts";

/** Returns the measurements of a relay in the text format of Prometheus. */
export function exposition({ watchers, ageMs, entries }: FeedState): string {
  const isKnown = ageMs !== undefined && ageMs !== Number.POSITIVE_INFINITY;
  return [
    ...gauge("relay_watchers", "Streams of the feed that are open.", watchers),
    ...gauge("relay_staleness_seconds", "How old what the relay knows of endings is.", isKnown ? ageMs / 1000 : "+Inf"),
    ...gauge("relay_revocations", "Revocations in memory.", entries),
    "",
  ].join("\n");
}

const gauge = (name: string, help: string, value: number | string) => [
  `# HELP ${name} ${help}`,
  `# TYPE ${name} gauge`,
  `${name} ${value}`,
];
