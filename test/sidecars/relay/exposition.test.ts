import { expect, test } from "vitest";
import { exposition } from "../../../src/sidecars/relay/serve.ts";

test("a relay exposes gauges in the text format of Prometheus, with help and type", () => {
  const help = (name: string) => expect.stringMatching(new RegExp(`^# HELP ${name} \\w`));
  expect(exposition({ watchers: 3, ageMs: 250, entries: 7 }).split("\n")).toEqual([
    ...[help("relay_watchers"), "# TYPE relay_watchers gauge", "relay_watchers 3"],
    ...[help("relay_staleness_seconds"), "# TYPE relay_staleness_seconds gauge", "relay_staleness_seconds 0.25"],
    ...[help("relay_revocations"), "# TYPE relay_revocations gauge", "relay_revocations 7", ""],
  ]);
});

test.each([undefined, Number.POSITIVE_INFINITY])("an age of %s is infinite", (ageMs) => {
  expect(exposition({ watchers: 0, ageMs, entries: 0 })).toContain("\nrelay_staleness_seconds +Inf\n");
});
