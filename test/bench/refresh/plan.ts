/** Orders and reports of the generator: plain data, since it is a process of its own. */

/** Requests of one kind to one server. A request is `head`, a credential, and `tail`. */
export type Plan = {
  readonly name: string;
  readonly port: number;
  readonly head: string;
  readonly tail: string;
  /**
   * - `adopt`: each connection is a client with a cookie jar: it starts with one of the credentials, and presents next
   *   what the last response has set.
   * - `spend`: each credential is presented once.
   * - `repeat`: each connection presents its credential again and again.
   */
  readonly use: "adopt" | "spend" | "repeat";
  readonly credentials: readonly string[];
  /** Refreshes by gRPC over HTTP/2: a request is a credential alone. */
  readonly isGrpc?: boolean;
};

/** A stretch of a plan. */
export type Slice = {
  readonly name: string;
  /** Ends then, or when the credentials are spent. */
  readonly seconds: number;
  /** Requests per second that are offered; undefined: each connection sends its next one as soon as it has the response. */
  readonly rate?: number;
};

/** What the clients saw. */
export type Load = {
  /** How many responses had which status; "lost" where there was none. */
  readonly responses: Readonly<Record<string, number>>;
  /** From the first request to the last response, s. */
  readonly seconds: number;
  /** Responses per second. */
  readonly rate: number;
  /** Milliseconds; at an offered rate they count from when the request was due. */
  readonly p50: number;
  readonly p99: number;
};

/** The result of one slice. */
export type Result = Load & {
  /** What a response took of the server's core, µs; NaN where that cannot be measured. */
  readonly cpu: number;
};

export type Order = { readonly plan: Plan } | { readonly slice: Slice };
