import type { CallInFlight } from "../bounds.ts";
import type { Call } from "../call/call.ts";
import type { Endpoint } from "../call/endpoints.ts";
import type { Exchange } from "../call/exchange.ts";
import type { Codecs } from "../codec/content-codec.ts";
import type { Binding } from "../routes/matcher.ts";

/** A request that has a route, and what it is served with. */
export interface Serving<Source> {
  readonly exchange: Exchange<Source>;
  readonly endpoint: Endpoint;
  readonly call: Call;
  /** The variables of the path. */
  readonly bindings: readonly Binding[];
  readonly query: string;
  readonly codecs: Codecs | undefined;
  /** Undefined if the body needs no limit beyond its size. */
  readonly inFlight: CallInFlight | undefined;
}
