/** Counts the outcomes of checks since the start, and exposes them in the text format of Prometheus. */
import type { AuthRefusal } from "./check.ts";

type Outcome = "accepted" | AuthRefusal["reason"];

export class Outcomes {
  readonly #counts = new Map<Outcome, number>();

  count(outcome: Outcome): void {
    this.#counts.set(outcome, (this.#counts.get(outcome) ?? 0) + 1);
  }

  exposition(stalenessMs: number): string {
    const checks = [...this.#counts].map(
      ([outcome, count]) => `forward_auth_checks_total{outcome="${outcome}"} ${count}`,
    );
    return [
      "# HELP forward_auth_checks_total Requests that a gateway asked about, by what became of them.",
      "# TYPE forward_auth_checks_total counter",
      ...checks,
      "# HELP forward_auth_staleness_seconds How old what is known of endings is.",
      "# TYPE forward_auth_staleness_seconds gauge",
      `forward_auth_staleness_seconds ${stalenessMs === Number.POSITIVE_INFINITY ? "+Inf" : stalenessMs / 1000}`,
      "",
    ].join("\n");
  }
}
