import type { ProofRefusal } from "../../platform/dpop/proof.ts";
import type { Refusal } from "../verdict.ts";
import { type DetailDeps, describeRefusal, type Presented } from "./details.ts";
import type { RefusalRecord, Report } from "./report.ts";

/** After a refusal was reported, the next one for the same reason is reported after this time, in ms. */
const REPORT_INTERVAL_MS = 60_000;

export type RefusalRecords = { readonly [reason in Refusal | ProofRefusal]?: RefusalRecord };

type Deps = DetailDeps & { readonly monotonic: () => number; readonly report: Report };

/** Counts refusals by their reasons, and reports the first one of each reason in a minute. Accepted tokens never come here. */
export class RefusalReporter {
  readonly #deps: Deps;
  readonly #records = new Map<Refusal | ProofRefusal, RefusalRecord & { readonly reportedAtMs: number }>();

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  note(reason: Refusal | ProofRefusal, presented: Presented): void {
    const { monotonic, report } = this.#deps;
    const known = this.#records.get(reason);
    const nowMs = monotonic();
    const count = (known?.count ?? 0) + 1;
    if (known !== undefined && nowMs - known.reportedAtMs < REPORT_INTERVAL_MS) {
      this.#records.set(reason, { ...known, count });
      return;
    }
    const details = describeRefusal(reason, presented, this.#deps);
    this.#records.set(reason, { count, ...details, reportedAtMs: nowMs });
    report({ event: "token_refused", reason, count, ...details });
  }

  toRecords(): RefusalRecords {
    const entries = [...this.#records].map(([reason, { count, expected, received }]) => [
      reason,
      { count, expected, received },
    ]);
    return Object.fromEntries(entries);
  }
}
