/** Decides which requests are recorded: by OpenTelemetry's samplers, but never more than a limit. */
import { trace } from "@opentelemetry/api";
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  ParentBasedSampler,
  type Sampler,
  SamplingDecision,
  TraceIdRatioBasedSampler,
} from "@opentelemetry/sdk-trace-base";

/** The names of OTEL_TRACES_SAMPLER. */
type SamplerName = `${"" | "parentbased_"}${"always_on" | "always_off" | "traceidratio"}`;

export function createSampler(name: SamplerName, ratio: number): Sampler {
  if (name.startsWith("parentbased_")) {
    return new ParentBasedSampler({ root: createSampler(name.slice("parentbased_".length) as SamplerName, ratio) });
  }
  if (name === "always_on") return new AlwaysOnSampler();
  return name === "always_off" ? new AlwaysOffSampler() : new TraceIdRatioBasedSampler(ratio);
}

type TraceLimit = { readonly count: number; readonly windowMs: number };

/** The limit of recorded traces, whatever the reason for recording: anybody may send a `traceparent` that requests it. */
export type TraceLimits = { readonly bucket: TraceBucket; readonly onLimited: () => void };

const NOT_RECORDED = { decision: SamplingDecision.NOT_RECORD } as const;

type TraceBucket = ReturnType<typeof createTraceBucket>;

/** Creates a token bucket of traces per window, which is refilled evenly. @param clock returns ms of a clock that never goes back */
export function createTraceBucket({ count, windowMs }: TraceLimit, clock = () => performance.now()) {
  let left = count;
  let filledAt = clock();
  return {
    isEmpty(): boolean {
      const now = clock();
      left = Math.min(count, left + ((now - filledAt) * count) / windowMs);
      filledAt = now;
      return left < 1;
    },
    take(): void {
      left--;
    },
  };
}

/** Takes one trace from the bucket for each request that is recorded. Spans inside the request do not count. */
export function limitedSampler(inner: Sampler, bucket: TraceBucket): Sampler {
  return {
    shouldSample(parent, ...rest) {
      const result = inner.shouldSample(parent, ...rest);
      if (result.decision === SamplingDecision.NOT_RECORD) return result;
      const caller = trace.getSpanContext(parent);
      if (caller !== undefined && caller.isRemote !== true) return result;
      if (bucket.isEmpty()) return NOT_RECORDED;
      bucket.take();
      return result;
    },
    toString: () => `${inner.toString()}, limited`,
  };
}
