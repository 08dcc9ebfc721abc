import { Counter, Registry } from "prom-client";
import { expect, test } from "vitest";
import { FastCounter } from "../../../src/service/observability/fast-metrics.ts";

test("it is exposed as the library's own counter is, before and after its first increment", async () => {
  const options = { name: "some_total", help: "Some" };
  const [ours, theirs] = [new Registry(), new Registry()];
  const fast = new FastCounter({ ...options, labelNames: ["operation", "reason"] }, ours);
  const library = new Counter({ ...options, labelNames: ["operation", "reason"], registers: [theirs] });
  expect(await ours.metrics()).toBe(await theirs.metrics());
  for (const [operation, reason] of [
    ["a", "forged"],
    ["a", 'ab"s\nent'],
    ["b", "forged"],
    ["a", "forged"],
  ] as const) {
    fast.inc(operation, reason);
    library.inc({ operation, reason });
  }
  expect(await ours.metrics()).toBe(await theirs.metrics());
});

test("it may have one label", async () => {
  const registry = new Registry();
  const fast = new FastCounter({ name: "some_total", help: "Some", labelNames: ["limit"] }, registry);
  fast.inc("refresh");
  fast.inc("refresh");
  expect(await registry.metrics()).toContain('some_total{limit="refresh"} 2\n');
});
