import type { Clock } from "../ports.ts";

/** How many watchers are woken in one turn of the event loop. Requests are served between two turns. */
const WATCHERS_PER_TURN = 50;
/** The longest pause, in ms, between waking all watchers of the feed and waking them again for new revocations. */
const MAX_PAUSE_MS = 40;
/**
 * After all watchers were woken, the pause is this many times as long as the processor time that waking them took. So waking takes a
 * fifth of a busy process's time; more if waking all watchers takes over 10 ms, because the pause is limited.
 */
const PAUSE_PER_COST = 4;
/** The shortest pause between two times of waking all watchers, in ms: the resolution of Node's timers. A shorter pause is skipped. */
const MIN_PAUSE_MS = 1;

/**
 * Wakes the watchers of the feed in rounds; each round wakes all of them. When the feed is idle, a round begins at once. A round that
 * delivers revocations is followed by a pause in proportion to the processor time of the round, and revocations that arrive during the
 * pause are delivered together.
 */
export class FeedWakes {
  readonly #cpuMs: Clock;
  readonly #waiting = new Set<() => void>();
  #count = 0;
  #isBusy = false;
  /** Why another round must follow this one and its pause: a heartbeat is due, or revocations have arrived. */
  #wanted: "nothing" | "beat" | "news" = "nothing";
  #hasNews = false;

  /** @param cpuMs the processor time of this process. Elapsed time would make the pauses too long on a machine that is busy otherwise */
  constructor(cpuMs: Clock) {
    this.#cpuMs = cpuMs;
  }

  /** How often watchers were woken so far. A watcher that was busy compares this with an earlier value. */
  get count(): number {
    return this.#count;
  }

  add(wake: () => void): void {
    this.#waiting.add(wake);
  }

  delete(wake: () => void): void {
    this.#waiting.delete(wake);
  }

  /** Resolves when watchers are woken next, or when `signal` is aborted. */
  next(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        this.delete(wake);
        signal.removeEventListener("abort", wake);
        resolve();
      };
      this.add(wake);
      signal.addEventListener("abort", wake);
      if (signal.aborted) wake();
    });
  }

  /** Wakes all watchers because of new revocations: at once, or after the pause. */
  wake(): void {
    this.#count++;
    if (this.#isBusy) this.#wanted = "news";
    else this.#begin(true);
  }

  /** Wakes all watchers for a heartbeat. No pause follows, so that a heartbeat does not delay new revocations. */
  beat(): void {
    this.#count++;
    if (!this.#isBusy) this.#begin(false);
    else if (this.#wanted === "nothing") this.#wanted = "beat";
  }

  /** Wakes all watchers at once, even during a pause. */
  wakeNow(): void {
    this.#count++;
    for (const wake of this.#waiting) wake();
  }

  #begin(hasNews: boolean): void {
    this.#isBusy = true;
    this.#wanted = "nothing";
    this.#hasNews = hasNews;
    this.#wakeFrom([...this.#waiting], 0, this.#cpuMs());
  }

  #wakeFrom(round: readonly (() => void)[], at: number, beganAtMs: number): void {
    const end = at + WATCHERS_PER_TURN;
    // A watcher may have left after the list of watchers to wake was made.
    for (const wake of round.slice(at, end)) if (this.#waiting.has(wake)) wake();
    // Before the next turn of the event loop, Node sends the bytes that the watchers wrote. So the measured cost includes the sending.
    setImmediate(() => (end < round.length ? this.#wakeFrom(round, end, beganAtMs) : this.#pause(beganAtMs)));
  }

  #pause(beganAtMs: number): void {
    const pauseMs = this.#hasNews ? Math.min(MAX_PAUSE_MS, PAUSE_PER_COST * (this.#cpuMs() - beganAtMs)) : 0;
    if (pauseMs < MIN_PAUSE_MS) this.#end();
    else setTimeout(() => this.#end(), pauseMs);
  }

  #end(): void {
    this.#isBusy = false;
    if (this.#wanted !== "nothing") this.#begin(this.#wanted === "news");
  }
}
