import { context, ROOT_CONTEXT, SamplingDecision, SpanKind, TraceFlags, trace } from "@opentelemetry/api";
import { expect, test } from "vitest";
import { createSampler, createTraceBucket, limitedSampler } from "../../../src/platform/telemetry/sampler.ts";

const traceId = "1".repeat(32);
const within = (isRemote: boolean, traceFlags = TraceFlags.SAMPLED) =>
  trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId: "2".repeat(16), traceFlags, isRemote });

function aSampler(count: number) {
  let now = 0;
  const bucket = createTraceBucket({ count, windowMs: 1000 }, () => now);
  const sampler = limitedSampler(createSampler("parentbased_always_on", 1), bucket);
  const records = (parent: typeof ROOT_CONTEXT = context.active()) =>
    sampler.shouldSample(parent, traceId, "POST", SpanKind.SERVER, {}, []).decision ===
    SamplingDecision.RECORD_AND_SAMPLED;
  return { records, bucket, advance: (ms: number) => (now += ms) };
}

test("so many requests are recorded at once, and then as many as the time allows", () => {
  const { records, bucket, advance } = aSampler(4);
  expect(Array.from({ length: 6 }, () => records())).toEqual([true, true, true, true, false, false]);
  advance(249);
  expect(bucket.isEmpty()).toBe(true);
  advance(1);
  expect([records(), records()]).toEqual([true, false]);
  advance(60_000);
  expect(Array.from({ length: 6 }, () => records()).filter(Boolean)).toHaveLength(4);
});

test("the limit holds for callers that ask to be recorded, and spans inside of a request follow its own", () => {
  const { records } = aSampler(1);
  expect([records(within(true)), records(within(true))]).toEqual([true, false]);
  expect(records(within(false))).toBe(true);
  expect(records(within(false, TraceFlags.NONE))).toBe(false);
});

test("a caller that is not to be recorded uses nothing up", () => {
  const { records } = aSampler(1);
  expect(Array.from({ length: 3 }, () => records(within(true, TraceFlags.NONE)))).toEqual([false, false, false]);
  expect(records(within(true))).toBe(true);
});

test.each([
  ["always_on", true, true],
  ["always_off", false, false],
  ["traceidratio", false, false],
  ["parentbased_always_on", true, true],
  ["parentbased_always_off", false, true],
  ["parentbased_traceidratio", false, true],
] as const)("%s records roots: %s, and what its caller records: %s", (name, root, inside) => {
  const sampler = createSampler(name, 0);
  const decide = (parent: typeof ROOT_CONTEXT) =>
    sampler.shouldSample(parent, traceId, "POST", SpanKind.SERVER, {}, []).decision ===
    SamplingDecision.RECORD_AND_SAMPLED;
  expect([decide(ROOT_CONTEXT), decide(within(true))]).toEqual([root, inside]);
});
