/** The messages between the measuring process and the load generator. They are plain data, because they cross processes. */

/** Requests of one kind to one server. Each request consists of `head`, a credential and `tail`. */
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
  /** Whether to refresh by gRPC over HTTP/2. In that case a request is made from the credential alone. */
  readonly isGrpc?: boolean;
};

/** One turn of a plan: for how long, and at which rate, the load generator sends the plan's requests. */
export type Slice = {
  readonly name: string;
  /** How long the turn lasts. It ends earlier if the credentials are used up. */
  readonly seconds: number;
  /** Requests per second that are offered; undefined: each connection sends its next one as soon as it has the response. */
  readonly rate?: number;
};

/** The results on the side of the clients. */
export type Load = {
  /** How many responses had each status; "lost" counts missing responses. */
  readonly responses: Readonly<Record<string, number>>;
  /** The time from the first request to the last response, in s. */
  readonly seconds: number;
  /** Responses per second. */
  readonly rate: number;
  /** Latencies in ms. At an offered rate they are measured from the time at which the request was due. */
  readonly p50: number;
  readonly p99: number;
};

/** The result of one slice. */
export type Result = Load & {
  /** The CPU time of the server per response, in µs; NaN if it cannot be measured. */
  readonly cpu: number;
};

export type Order = { readonly plan: Plan } | { readonly slice: Slice };
