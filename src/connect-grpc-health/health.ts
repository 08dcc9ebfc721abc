/** The statuses of a server and its services, and their watchers. */
import type { DescService } from "@bufbuild/protobuf";
import { HealthCheckResponse_ServingStatus as ServingStatus } from "../../gen/grpc/health/v1/health_pb.ts";

export { ServingStatus };

export type HealthOptions = {
  /** The services that have a status besides the server as a whole, which is the service `""`. */
  readonly services: Iterable<DescService | string>;
  /**
   * Returns whether the server can serve now, for example after a ping of its database. False, or a rejection, means NOT_SERVING for
   * every service. Check and List wait for its result, so it should finish within a bounded time. It is called repeatedly while there
   * are watchers. Concurrent callers share one call. Default: none.
   */
  readonly probe?: () => unknown;
  /** How often the probe is called for watchers, in ms. Default: 1000. */
  readonly probeIntervalMs?: number;
};

const PROBE_INTERVAL_MS = 1000;

/** The statuses of all services. A service whose status was not set is SERVING. */
export class Health {
  readonly #statuses: Map<string, ServingStatus>;
  readonly #probe: (() => unknown) | undefined;
  readonly #probeIntervalMs: number;
  readonly #watchers = new Set<() => void>();
  #isShutDown = false;
  #passed = true;
  #probing: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor({ services, probe, probeIntervalMs = PROBE_INTERVAL_MS }: HealthOptions) {
    const names = [...services].map((service) => (typeof service === "string" ? service : service.typeName));
    this.#statuses = new Map(["", ...names].map((name) => [name, ServingStatus.SERVING]));
    this.#probe = probe;
    this.#probeIntervalMs = probeIntervalMs;
  }

  /** Sets the status of a service, which may be a new one. */
  set(service: string, status: ServingStatus): void {
    this.#statuses.set(service, status);
    this.#notify();
  }

  /** Sets all statuses to NOT_SERVING; later changes have no effect. Call it when the server begins to drain. */
  shutdown(): void {
    this.#isShutDown = true;
    this.#notify();
  }

  /** Calls the probe. It never rejects. */
  refresh(): Promise<void> {
    if (this.#probe === undefined || this.#isShutDown) return Promise.resolve();
    this.#probing ??= this.#runProbe(this.#probe);
    return this.#probing;
  }

  /** Returns the status according to the last probe; undefined for an unknown service. */
  statusOf(service: string): ServingStatus | undefined {
    const status = this.#statuses.get(service);
    if (status === undefined) return undefined;
    return this.#isShutDown || (status === ServingStatus.SERVING && !this.#passed) ? ServingStatus.NOT_SERVING : status;
  }

  get services(): Iterable<string> {
    return this.#statuses.keys();
  }

  get watchers(): number {
    return this.#watchers.size;
  }

  /** Calls `wake` after every change that may concern a service. The returned function ends these calls. */
  watch(wake: () => void): () => void {
    this.#watchers.add(wake);
    if (this.#probe !== undefined) {
      this.#timer ??= setInterval(() => void this.refresh(), this.#probeIntervalMs).unref();
    }
    return () => {
      this.#watchers.delete(wake);
      if (this.#watchers.size > 0) return;
      clearInterval(this.#timer);
      this.#timer = undefined;
    };
  }

  async #runProbe(probe: () => unknown): Promise<void> {
    let passed = false;
    try {
      passed = (await probe()) !== false;
    } catch {
      // A probe that throws counts as failed.
    }
    this.#probing = undefined;
    if (passed === this.#passed) return;
    this.#passed = passed;
    this.#notify();
  }

  #notify(): void {
    for (const wake of this.#watchers) wake();
  }
}
