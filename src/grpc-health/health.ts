/** The statuses of a server and its services, and who watches them. */
import type { DescService } from "@bufbuild/protobuf";
import { HealthCheckResponse_ServingStatus as ServingStatus } from "../../gen/grpc/health/v1/health_pb.ts";

export { ServingStatus };

export type HealthOptions = {
  /** The services that have a status besides the server as a whole, which is the service `""`. */
  readonly services: Iterable<DescService | string>;
  /**
   * Whether the server can serve now, such as a ping of its database: false, or a rejection, means NOT_SERVING for everything.
   * Called by Check and List, which wait for it: bound its time. Called repeatedly while there are watchers; calls at the same
   * time share one. Default: none.
   */
  readonly probe?: () => unknown;
  /** How often the probe is called for watchers, ms. Default: 1000. */
  readonly probeIntervalMs?: number;
};

const PROBE_INTERVAL_MS = 1000;

/** Statuses by service. Every service begins as SERVING. */
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

  /** Sets the status of a service, known before or not. */
  set(service: string, status: ServingStatus): void {
    this.#statuses.set(service, status);
    this.#notify();
  }

  /** From now on everything is NOT_SERVING, whatever is set. To be called when the server begins to drain. */
  shutdown(): void {
    this.#isShutDown = true;
    this.#notify();
  }

  /** Calls the probe. Never rejects. */
  refresh(): Promise<void> {
    if (this.#probe === undefined || this.#isShutDown) return Promise.resolve();
    this.#probing ??= this.#runProbe(this.#probe);
    return this.#probing;
  }

  /** The status as far as it is known; undefined for an unknown service. */
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

  /** Calls `wake` after every change that may concern a service, until the returned function is called. */
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
      // It counts as "cannot serve".
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
