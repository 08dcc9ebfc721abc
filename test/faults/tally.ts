/** What one fault cost, and the table of all of them. */
import { request } from "../support/raw-http.ts";

export type Tally = {
  requests: number;
  /** 503, or no answer at all: nobody was told anything untrue. */
  unanswered: number;
  /** A live session that was refused. */
  wrong401: number;
  /** A token of an ended session that was taken, by introspection or by a verifier. */
  deadAccepted: number;
  /** A session that was refreshed after its logout had been acknowledged. */
  undone: number;
  slowestMs: number;
};

export type Row = Tally & {
  readonly fault: string;
  /** How long after the end of the fault every instance served again, ms; undefined: not by itself. */
  readonly recoveredMs: number | undefined;
  /** Why some of it need not be zero; the docs say the same. */
  readonly allowed: string | undefined;
};

export function newTally(): Tally {
  return { requests: 0, unanswered: 0, wrong401: 0, deadAccepted: 0, undone: 0, slowestMs: 0 };
}

export function isClean(row: Row): boolean {
  if (row.recoveredMs === undefined) return false;
  return row.allowed !== undefined || row.wrong401 + row.deadAccepted + row.undone === 0;
}

const COLUMNS =
  "| fault | requests | 503 or cut | wrong 401 | dead tokens accepted | acknowledged logouts undone | slowest response | recovered alone |";

export function tableHead(): string {
  return `${COLUMNS}\n|---|---|---|---|---|---|---|---|`;
}

export function tableRow(row: Row): string {
  const recovered = row.recoveredMs === undefined ? "**no**" : `${(row.recoveredMs / 1000).toFixed(1)} s`;
  const cells = [
    row.allowed === undefined ? row.fault : `${row.fault} ¹`,
    row.requests,
    row.unanswered,
    row.wrong401,
    row.deadAccepted,
    row.undone,
    `${(row.slowestMs / 1000).toFixed(1)} s`,
    recovered,
  ];
  return `| ${cells.join(" | ")} |`;
}

export type Reply = { readonly status: number; readonly headers: Headers; readonly body: string };

/** How long a client waits before it gives up, ms. */
const PATIENCE = 5_000;

/** A request, counted. Status 0: no answer. */
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
  const timer = Promise.withResolvers<Reply>();
  const timeout = setTimeout(() => timer.resolve(NO_ANSWER), PATIENCE);
  const answer = request(url, { method, path, headers: { ...type, ...headers }, ...json });
  const reply = await Promise.race([answer.catch(() => NO_ANSWER), timer.promise]);
  clearTimeout(timeout);
  if (reply.status === 503 || reply.status === 0) tally.unanswered++;
  // A process that stands still answers nobody: how long it did is in the name of the fault.
  if (reply.status !== 0) tally.slowestMs = Math.max(tally.slowestMs, performance.now() - startedAt);
  return reply;
}

const NO_ANSWER: Reply = { status: 0, headers: new Headers(), body: "" };
