/** Which requests are recorded: by the standard's samplers, and never more than a limit. */
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
  switch (name) {
    case "always_on":
      return new AlwaysOnSampler();
    case "always_off":
      return new AlwaysOffSampler();
    case "traceidratio":
      return new TraceIdRatioBasedSampler(ratio);
    case "parentbased_always_on":
      return new ParentBasedSampler({ root: new AlwaysOnSampler() });
    case "parentbased_always_off":
      return new ParentBasedSampler({ root: new AlwaysOffSampler() });
    case "parentbased_traceidratio":
      return new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(ratio) });
  }
}

export type TraceLimit = { readonly count: number; readonly windowMs: number };

const NOT_RECORDED = { decision: SamplingDecision.NOT_RECORD } as const;

/**
 * Bounds what is recorded, whatever asks for it: anybody may send a `traceparent` that says so. The spans inside of a request
 * follow its own.
 */
export class LimitedSampler implements Sampler {
  readonly #inner: Sampler;
  readonly #limit: TraceLimit;
  readonly #clock: () => number;
  readonly #onLimited: () => void;
  #left: number;
  #filledAt: number;

  /** @param clock ms that never step back */
  constructor(inner: Sampler, limit: TraceLimit, onLimited: () => void, clock = () => performance.now()) {
    this.#inner = inner;
    this.#limit = limit;
    this.#onLimited = onLimited;
    this.#clock = clock;
    this.#left = limit.count;
    this.#filledAt = clock();
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
    const isInside = caller !== undefined && caller.isRemote !== true;
    if (isInside || this.#take()) return result;
    this.#onLimited();
    return NOT_RECORDED;
  }

  toString(): string {
    const { count, windowMs } = this.#limit;
    return `${this.#inner.toString()}, at most ${count} in ${windowMs} ms`;
  }

  #take(): boolean {
    const { count, windowMs } = this.#limit;
    const now = this.#clock();
    this.#left = Math.min(count, this.#left + ((now - this.#filledAt) * count) / windowMs);
    this.#filledAt = now;
    if (this.#left < 1) return false;
    this.#left--;
    return true;
  }
}
