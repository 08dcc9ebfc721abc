import { MAX_SUBSCRIPTIONS } from "../model.ts";
import { createSequences } from "../sequence.ts";
import type { Verdicts } from "./poll-pass.ts";

const MAX_REMEMBERED = 4_096;
const NONE: Verdicts = new Map();

/** Remembers which signals receivers have accepted or refused, until a cursor has passed them. The first verdict counts. */
export class VerdictMemory {
  readonly #verdicts = new Map<string, Verdicts>();
  readonly #passes = createSequences();

  has(stream: string, signal: string): boolean {
    return this.#verdicts.get(stream)?.has(signal) ?? false;
  }

  add(stream: string, verdicts: Verdicts): void {
    const known = this.#verdicts.get(stream) ?? NONE;
    this.#keep(stream, new Map([...known, ...[...verdicts].filter(([signal]) => !known.has(signal))]));
  }

  /**
   * Runs a pass over the log (poll-pass.ts) with the remembered verdicts, and then forgets those on signals that a cursor has passed.
   * Verdicts that arrive during the pass are kept.
   * Passes over the log for one stream run one after the other, so that no pass restores verdicts that another pass has forgotten.
   */
  settle<T extends { readonly open: Verdicts }>(stream: string, pass: (verdicts: Verdicts) => Promise<T>): Promise<T> {
    return this.#passes(stream, async () => {
      const given = this.#verdicts.get(stream) ?? NONE;
      const result = await pass(given);
      const later = [...(this.#verdicts.get(stream) ?? NONE)].filter(([signal]) => !given.has(signal));
      this.#keep(stream, new Map([...result.open, ...later]));
      return result;
    });
  }

  #keep(stream: string, verdicts: Verdicts): void {
    this.#verdicts.delete(stream);
    if (verdicts.size === 0) return;
    this.#verdicts.set(stream, new Map([...verdicts].slice(-MAX_REMEMBERED)));
    // If more streams are remembered than can exist, some were deleted. The stream with the oldest poll is forgotten first.
    const [oldest] = this.#verdicts.keys();
    if (this.#verdicts.size > MAX_SUBSCRIPTIONS && oldest !== undefined) this.#verdicts.delete(oldest);
  }
}
