import {
  Code,
  ConnectError,
  type ConnectRouter,
  type ConnectRouterOptions,
  type ServiceImpl,
} from "@connectrpc/connect";
import { Health as HealthService } from "../../gen/grpc/health/v1/health_pb.ts";
import { type Health, ServingStatus } from "./health.ts";

export type HealthServiceOptions = ConnectRouterOptions & {
  /** Calls of Watch at the same time; further ones get `unavailable`. Default: 1000. */
  readonly maxWatchers?: number;
};

const MAX_WATCHERS = 1000;
/** As in gRPC's own servers: List gives up beyond it. */
const MAX_LISTED = 100;

/** Adds `grpc.health.v1.Health` to a router: Check, List and Watch over gRPC, gRPC-Web and Connect. */
export function addHealth(router: ConnectRouter, health: Health, options: HealthServiceOptions = {}): ConnectRouter {
  const { maxWatchers = MAX_WATCHERS, ...routerOptions } = options;
  return router.service(HealthService, healthService(health, maxWatchers), routerOptions);
}

function healthService(health: Health, maxWatchers: number): ServiceImpl<typeof HealthService> {
  return {
    async check({ service }) {
      if (health.statusOf(service) === undefined) throw new ConnectError("unknown service", Code.NotFound);
      await health.refresh();
      return { status: health.statusOf(service) ?? ServingStatus.UNKNOWN };
    },

    async list() {
      const services = [...health.services];
      if (services.length > MAX_LISTED) throw new ConnectError("too many services", Code.ResourceExhausted);
      await health.refresh();
      const statuses = services.map((name) => [name, { status: health.statusOf(name) ?? ServingStatus.UNKNOWN }]);
      return { statuses: Object.fromEntries(statuses) };
    },

    async *watch({ service }, { signal }) {
      if (health.watchers >= maxWatchers) throw new ConnectError("too many watchers", Code.Unavailable);
      for await (const status of watchStatus(health, service, signal)) yield { status };
    },
  };
}

/** The status now, and whenever it changes; SERVICE_UNKNOWN while there is no such service. Ends with `signal`. */
async function* watchStatus(health: Health, service: string, signal: AbortSignal): AsyncGenerator<ServingStatus> {
  let changed = Promise.withResolvers<void>();
  const wake = () => changed.resolve();
  const stop = health.watch(wake);
  signal.addEventListener("abort", wake, { once: true });
  try {
    let sent: ServingStatus | undefined;
    await health.refresh();
    while (!signal.aborted) {
      changed = Promise.withResolvers();
      const status = health.statusOf(service) ?? ServingStatus.SERVICE_UNKNOWN;
      if (status !== sent) yield status;
      sent = status;
      await changed.promise;
    }
  } finally {
    signal.removeEventListener("abort", wake);
    stop();
  }
}
