/**
 * Runs several processes (workers) on the same ports. Each is a whole instance with its own listeners, and the system distributes the
 * connections (SO_REUSEPORT). The supervisor takes no connections. If a worker ends without an order to stop, the supervisor starts another
 * one. It kills a worker that has stalled.
 */
import { type ChildProcess, fork } from "node:child_process";
import type { Logger } from "../observability/logger.ts";
import { Heartbeats } from "./heartbeat.ts";
import { type ToSupervisor, type ToWorker, WORKER, type WorkerRole } from "./messages.ts";
import { MetricsRounds } from "./metrics-round.ts";

/** The pause before a worker that has ended is replaced, in ms. It doubles with each worker that ends soon after its start. */
const MIN_BACKOFF_MS = 100;
const MAX_BACKOFF_MS = 30_000;
/** A worker that has run for this long, in ms, has started successfully. */
const GOOD_RUN_MS = 30_000;

type Deps = {
  readonly log: Logger;
  readonly out: (text: string) => void;
  readonly env: NodeJS.ProcessEnv;
  /** Handles a call of a worker to the supervisor. */
  readonly serveCall: (call: unknown) => unknown;
  /** Receives the object that stops all workers, before the first worker starts: an order to stop may come before all workers are ready. */
  readonly onStart: (workers: Stoppable) => void;
  /** Starts a process with an environment. Default: this command again. */
  readonly fork?: (env: NodeJS.ProcessEnv) => ChildProcess;
};

type End = { readonly code: number | null; readonly signal: string | null; readonly err?: unknown };

/** The first version of Node whose listeners can share a port. */
const MIN_NODE = [23, 1] as const;

function requireNode(): void {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  if (major < MIN_NODE[0] || (major === MIN_NODE[0] && minor < MIN_NODE[1]))
    throw new Error(`WORKERS needs Node ${MIN_NODE.join(".")} or later`);
}

/** Passes the order to stop on to the workers, and resolves when all have ended. */
type Stoppable = { readonly stop: (mode: "drain" | "now") => Promise<void> };

/** Starts the workers, and reports once when all are ready. @throws Error if one of them ends before that */
export async function supervise(count: number, deps: Deps): Promise<Stoppable> {
  requireNode();
  const supervisor = new Supervisor(deps);
  deps.onStart(supervisor);
  // The first worker starts alone: it creates what is missing, such as a key ring, and reports faults of the start.
  const text = await supervisor.start("first");
  supervisor.keepPortsOf(JSON.parse(text) as Urls);
  await Promise.all(Array.from({ length: count - 1 }, () => supervisor.start("next")));
  supervisor.replaceFromNowOn(count);
  const note = "all workers serve; each counts rate limits for itself, so a caller can reach a multiple of them";
  deps.log.info({ event: "workers_ready", workers: count }, note);
  deps.out(text);
  return supervisor;
}

type Urls = { readonly public: string; readonly admin: string };

class Supervisor implements Stoppable {
  readonly #deps: Deps;
  readonly #metrics = new MetricsRounds();
  readonly #running = new Set<ChildProcess>();
  /** The workers that have started and can handle messages. */
  readonly #ready = new Set<ChildProcess>();
  readonly #stalled = new Set<ChildProcess>();
  readonly #heartbeats = new Heartbeats((worker, silentMs) => this.#killStalled(worker, silentMs));
  #ports: Readonly<Record<string, string>> = {};
  #isStopping = false;
  #replaces = false;
  #backoffMs = MIN_BACKOFF_MS;
  #onEmpty = () => {};

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** Gives the following workers the ports of the first one, which may have chosen free ones. */
  keepPortsOf(urls: Urls): void {
    this.#ports = { PORT: portOf(urls.public), ADMIN_PORT: portOf(urls.admin) };
  }

  replaceFromNowOn(count: number): void {
    this.#replaces = true;
    // A worker that was ready may have ended before all others were ready.
    for (let missing = count - this.#running.size; missing > 0; missing--) this.#replace();
  }

  async stop(mode: "drain" | "now"): Promise<void> {
    this.#isStopping = true;
    const ended = new Promise<void>((resolve) => {
      this.#onEmpty = resolve;
    });
    for (const worker of this.#running) worker.kill(mode === "drain" ? "SIGTERM" : "SIGINT");
    if (this.#running.size > 0) await ended;
  }

  /** Starts a worker. Resolves with its report when it is ready; rejects if it ends before that. */
  start(role: WorkerRole): Promise<string> {
    return new Promise((resolve, reject) => {
      const startedAt = performance.now();
      let worker: ChildProcess | undefined;
      const onEnd = (end: End) => {
        reject(endedBefore(end));
        this.#onEnd(worker, end, performance.now() - startedAt);
      };
      try {
        worker = this.#fork({ ...this.#deps.env, ...this.#ports, [WORKER]: role });
      } catch (err) {
        return onEnd({ code: null, signal: null, err });
      }
      this.#running.add(worker);
      this.#heartbeats.expect(worker);
      this.#listen(worker, resolve, onEnd);
    });
  }

  #fork(env: NodeJS.ProcessEnv): ChildProcess {
    const { fork: forkWith } = this.#deps;
    return forkWith?.(env) ?? fork(process.argv[1] ?? "", process.argv.slice(2), { env });
  }

  #listen(worker: ChildProcess, onReady: (text: string) => void, onEnd: (end: End) => void): void {
    worker.on("message", (message: ToSupervisor) => {
      this.#heartbeats.hear(worker);
      if (message.type === "heartbeat") return;
      if (message.type !== "ready") return void this.#take(worker, message);
      this.#ready.add(worker);
      onReady(message.text);
    });
    worker.on("error", (err) => {
      // A process that could not be started never exits. Other errors are about messages to a worker that has just ended.
      if (worker.pid === undefined) onEnd({ code: null, signal: null, err });
    });
    worker.on("exit", (code, signal) => onEnd({ code, signal }));
  }

  #onEnd(worker: ChildProcess | undefined, end: End, ranMs: number): void {
    if (worker !== undefined) {
      this.#running.delete(worker);
      this.#ready.delete(worker);
      this.#heartbeats.forget(worker);
      const cause = this.#stalled.delete(worker) ? "stalled" : "ended";
      void this.#metrics.end(worker.pid, this.#isStopping ? undefined : cause);
    }
    if (this.#running.size === 0) this.#onEmpty();
    if (this.#isStopping || !this.#replaces) return;
    if (ranMs >= GOOD_RUN_MS) this.#backoffMs = MIN_BACKOFF_MS;
    const replacedInMs = this.#backoffMs;
    this.#backoffMs = Math.min(MAX_BACKOFF_MS, this.#backoffMs * 2);
    this.#deps.log.error({ event: "worker_ended", worker: worker?.pid, ...end, replacedInMs }, "a worker has ended");
    setTimeout(() => this.#replace(), replacedInMs);
  }

  /** Nothing of a stalled worker could be saved: it does not even react to SIGTERM. A process that is stopped reacts to SIGKILL. */
  #killStalled(worker: ChildProcess, silentMs: number): void {
    this.#stalled.add(worker);
    this.#deps.log.error(
      { event: "worker_stalled", worker: worker.pid, silentMs },
      "a worker has stalled, and is killed",
    );
    worker.kill("SIGKILL");
  }

  /**
   * Starts a worker in place of one that has ended. If the new worker does not start, this is handled like the end of any worker; the
   * reason is in the log of the new worker.
   */
  #replace(): void {
    if (!this.#isStopping) this.start("next").catch(() => {});
  }

  async #take(worker: ChildProcess, message: Exclude<ToSupervisor, { type: "ready" | "heartbeat" }>): Promise<void> {
    // A message of a worker may arrive after the worker has ended. It is ignored, because the last metrics of that worker are already
    // counted.
    if (!this.#running.has(worker)) return;
    if (message.type === "metrics") return this.#metrics.report(worker.pid ?? 0, message.id, message.values);
    if (message.type === "call")
      return send(worker, { type: "called", id: message.id, result: this.#deps.serveCall(message.call) });
    // The asking worker is included even if it is not ready: the first worker serves metrics while it still waits for the store.
    const workers = new Map([...this.#ready, worker].map((each) => [each.pid ?? 0, each]));
    const ask = (id: number, round: number) => send(workers.get(id), { type: "metrics_wanted", id: round });
    const all = await this.#metrics.collect([...workers.keys()], ask);
    send(worker, { type: "all_metrics", id: message.id, all });
  }
}

function endedBefore({ code, signal, err }: End): Error {
  const cause = err instanceof Error ? err.message : (signal ?? `exit code ${code}`);
  return new Error(`a worker ended before it was ready (${cause})`, { cause: err });
}

function portOf(url: string): string {
  const { port, protocol } = new URL(url);
  return port !== "" ? port : protocol === "https:" ? "443" : "80";
}

function send(worker: ChildProcess | undefined, message: ToWorker): void {
  if (worker?.connected) worker.send(message);
}
