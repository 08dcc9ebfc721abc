/** Counts the effects of a fault. The counts become a row of the table in docs/why/faults.md. */
import { turns } from "../../src/platform/clock/turns.ts";
import { request } from "../support/raw-http.ts";
import { EVENT_MS } from "../support/until.ts";

export type Tally = {
  /** How long a client waits before it gives up, in ms of the time in which this process was running. */
  readonly patienceMs: number;
  requests: number;
  /** The number of requests with status 503 or without a response. The client cannot know whether they took effect. */
  unavailable: number;
  /**
   * The time, by `performance.now()`, until which the service may refuse requests that waited. `stalled` counts such refusals instead of
   * `unavailable`.
   */
  stallUntilMs: number;
  stalled: number;
  /** The number of live sessions that were refused. */
  wrong401: number;
  /**
   * The number of wrong 401 responses to requests that took longer than half of the reuse interval. The service does not promise to serve
   * such slow requests.
   */
  late401: number;
  /** The number of tokens of ended sessions that were accepted, by introspection or by a verifier. */
  deadAccepted: number;
  /** The number of sessions that were refreshed after their logout had been acknowledged. */
  undone: number;
  slowestMs: number;
};

export type Row = Tally & {
  readonly fault: string;
  /** How long after the end of the fault every instance served again, in ms; undefined if that needed a restart. */
  readonly recoveredMs: number | undefined;
  /** The reason in docs/why/faults.md why some of the counts need not be zero. */
  readonly allowed: string | undefined;
  /** Whether every request must be served, because nothing really fails. */
  readonly isNoFault: boolean;
};

export function newTally(patienceMs = 5_000): Tally {
  return {
    patienceMs,
    requests: 0,
    unavailable: 0,
    stallUntilMs: 0,
    stalled: 0,
    wrong401: 0,
    late401: 0,
    deadAccepted: 0,
    undone: 0,
    slowestMs: 0,
  };
}

export function isClean(row: Row): boolean {
  if (row.recoveredMs === undefined || (row.isNoFault && row.unavailable > 0)) return false;
  return row.allowed !== undefined || row.wrong401 + row.deadAccepted + row.undone === 0;
}

const COLUMNS =
  "| fault | requests | 503 or cut | wrong 401 | 401 after a request over R/2 | dead tokens accepted | acknowledged logouts undone | slowest response | recovered alone |";

export function tableHead(): string {
  return `${COLUMNS}\n|---|---|---|---|---|---|---|---|---|`;
}

export function tableRow(row: Row): string {
  const recovered = row.recoveredMs === undefined ? "**no**" : `${(row.recoveredMs / 1000).toFixed(1)} s`;
  const cells = [
    row.allowed === undefined ? row.fault : `${row.fault} ¹`,
    row.requests,
    row.stalled === 0 ? row.unavailable : `${row.unavailable} + ${row.stalled} ²`,
    row.wrong401,
    row.late401,
    row.deadAccepted,
    row.undone,
    `${(row.slowestMs / 1000).toFixed(1)} s`,
    recovered,
  ];
  return `| ${cells.join(" | ")} |`;
}

export type Reply = {
  readonly status: number;
  readonly headers: Headers;
  readonly body: string;
  readonly tookMs: number;
};

/** Sends a request and counts it. Status 0: no response. */
export async function exchange(
  tally: Tally,
  url: string,
  method: string,
  path: string,
  headers: Readonly<Record<string, string>>,
  body?: unknown,
): Promise<Reply> {
  tally.requests++;
  const startedAt = performance.now();
  const json = body === undefined ? {} : { body: JSON.stringify(body) };
  const type: Record<string, string> = body === undefined ? {} : { "content-type": "application/json" };
  const timer = Promise.withResolvers<typeof NO_RESPONSE>();
  const cancelTimeout = turns.after(tally.patienceMs, () => timer.resolve(NO_RESPONSE));
  // The limit of the connection is not shorter than the client's patience, which would count a slow response as none.
  const limitMs = Math.max(EVENT_MS, tally.patienceMs);
  const response = request(url, { method, path, headers: { ...type, ...headers }, ...json, limitMs });
  const reply = await Promise.race([response.catch(() => NO_RESPONSE), timer.promise]);
  cancelTimeout();
  const endedAt = performance.now();
  const tookMs = endedAt - startedAt;
  if (reply.status === 503 && endedAt < tally.stallUntilMs) tally.stalled++;
  else if (reply.status === 503 || reply.status === 0) tally.unavailable++;
  // Requests without a response are left out of the slowest time, because they only show how long the fault lasted.
  if (reply.status !== 0) tally.slowestMs = Math.max(tally.slowestMs, tookMs);
  return { status: reply.status, headers: reply.headers, body: reply.body, tookMs };
}

const NO_RESPONSE = { status: 0, headers: new Headers(), body: "" };
