/** Collects the metrics of all workers, and keeps the counts of those that have ended. */
import { lastingMetrics, mergeMetrics } from "../observability/merge-metrics.ts";
import type { MetricValues } from "../observability/metrics.ts";

/** How long a worker may take to report, in ms. After that its last report is used. */
const REPORT_TIMEOUT_MS = 5_000;

type Values = readonly MetricValues[];
/** Why a worker has ended unasked: the supervisor has killed it because it had stalled, or it has ended by itself. */
type EndCause = "stalled" | "ended";
type Round = { readonly missing: Set<number>; readonly finish: () => void };

export class MetricsRounds {
  readonly #last = new Map<number, Values>();
  readonly #rounds = new Map<number, Round>();
  #ended: Values = countOf();
  #ending: Promise<void> = Promise.resolve();
  #lastId = 0;

  /** Resolves with the metrics of all workers, once all have reported or the time is over. */
  collect(workers: readonly number[], ask: (worker: number, round: number) => void): Promise<readonly Values[]> {
    return new Promise((resolve) => {
      const id = ++this.#lastId;
      const finish = () => {
        clearTimeout(timer);
        this.#rounds.delete(id);
        resolve([this.#ended, ...this.#last.values()]);
      };
      const timer = setTimeout(finish, REPORT_TIMEOUT_MS);
      this.#rounds.set(id, { missing: new Set(workers), finish });
      for (const worker of workers) ask(worker, id);
    });
  }

  report(worker: number, round: number, values: Values): void {
    this.#last.set(worker, values);
    this.#drop(worker, this.#rounds.get(round));
  }

  /**
   * Keeps the last reported counts of a worker that has ended. Later counts are lost.
   *
   * @param worker undefined for one that could not be started
   * @param cause undefined if it was asked to end
   */
  end(worker: number | undefined, cause?: EndCause): Promise<void> {
    // Each `#end` adds to the result of the one before, so they run one after the other.
    this.#ending = this.#ending.then(() => this.#end(worker ?? 0, cause));
    return this.#ending;
  }

  async #end(worker: number, cause: EndCause | undefined): Promise<void> {
    const last = this.#last.get(worker) ?? [];
    const { values } = await mergeMetrics([this.#ended, lastingMetrics(last), countOf(cause)]);
    this.#ended = values;
    this.#last.delete(worker);
    for (const round of this.#rounds.values()) this.#drop(worker, round);
  }

  #drop(worker: number, round: Round | undefined): void {
    if (round?.missing.delete(worker) && round.missing.size === 0) round.finish();
  }
}

/** Returns the count of the end of one worker. Without a cause, it counts none. */
function countOf(cause?: EndCause): Values {
  const values = (["stalled", "ended"] as const).map((each) => ({
    labels: { cause: each },
    value: each === cause ? 1 : 0,
  }));
  const help = "Workers that have ended unasked, by cause";
  return [{ name: "session_workers_ended_total", help, type: "counter", aggregator: "sum", values }];
}
