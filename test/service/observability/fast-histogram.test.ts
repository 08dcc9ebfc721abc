import { Histogram, Registry } from "prom-client";
import { expect, test } from "vitest";
import { FastHistogram } from "../../../src/service/observability/fast-metrics.ts";

test("it is exposed as the library's own histogram is", async () => {
  const options = { name: "some_seconds", help: "Some", buckets: [0.1, 0.5, 1] };
  const [ours, theirs] = [new Registry(), new Registry()];
  const fast = new FastHistogram({ ...options, labelNames: ["method", "code"] }, ours);
  const library = new Histogram({ ...options, labelNames: ["method", "code"], registers: [theirs] });
  for (const labels of [
    { method: "a", code: "ok" },
    { method: "b", code: 'od"d' },
  ]) {
    for (const value of [0, 0.1, 0.10001, 0.4, 1, 2, 100]) {
      fast.observe(labels.method, labels.code, value);
      library.observe(labels, value);
    }
  }
  expect((await ours.metrics()).split("\n").sort()).toEqual((await theirs.metrics()).split("\n").sort());
});
