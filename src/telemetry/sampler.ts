/** Decides which requests are recorded: by OpenTelemetry's samplers, but never more than a limit. */
import { type Attributes, type Context, type Link, type SpanKind, trace } from "@opentelemetry/api";
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  ParentBasedSampler,
  type Sampler,
  SamplingDecision,
  TraceIdRatioBasedSampler,
} from "@opentelemetry/sdk-trace-base";
import type { SamplerName } from "../config/telemetry.ts";

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

/** A token bucket of traces per window, refilled evenly. */
export class TraceBucket {
  readonly #limit: TraceLimit;
  readonly #clock: () => number;
  #left: number;
  #filledAt: number;

  /** @param clock returns ms of a clock that never goes back */
  constructor(limit: TraceLimit, clock = () => performance.now()) {
    this.#limit = limit;
    this.#clock = clock;
    this.#left = limit.count;
    this.#filledAt = clock();
  }

  isEmpty(): boolean {
    const { count, windowMs } = this.#limit;
    const now = this.#clock();
    this.#left = Math.min(count, this.#left + ((now - this.#filledAt) * count) / windowMs);
    this.#filledAt = now;
    return this.#left < 1;
  }

  take(): void {
    this.#left--;
  }
}

/** Takes one trace from the bucket for each request that is recorded. Spans inside the request do not count. */
export class LimitedSampler implements Sampler {
  readonly #inner: Sampler;
  readonly #bucket: TraceBucket;

  constructor(inner: Sampler, bucket: TraceBucket) {
    this.#inner = inner;
    this.#bucket = bucket;
  }

  shouldSample(
    parent: Context,
    traceId: string,
    name: string,
    kind: SpanKind,
    attributes: Attributes,
    links: Link[],
  ): ReturnType<Sampler["shouldSample"]> {
    const result = this.#inner.shouldSample(parent, traceId, name, kind, attributes, links);
    if (result.decision === SamplingDecision.NOT_RECORD) return result;
    const caller = trace.getSpanContext(parent);
    if (caller !== undefined && caller.isRemote !== true) return result;
    if (this.#bucket.isEmpty()) return NOT_RECORDED;
    this.#bucket.take();
    return result;
  }

  toString(): string {
    return `${this.#inner.toString()}, limited`;
  }
}
