/** The gRPC health checking protocol, grpc.health.v1, for servers on connect-es. */
import {
  Code,
  ConnectError,
  type ConnectRouter,
  type ConnectRouterOptions,
  type HandlerContext,
  type ServiceImpl,
} from "@connectrpc/connect";
import { Health as HealthService } from "../../gen/grpc/health/v1/health_pb.ts";
import { type Health, ServingStatus } from "./health.ts";

export { Health, type HealthOptions, ServingStatus } from "./health.ts";

export type HealthServiceOptions = ConnectRouterOptions & {
  /** How many calls of Watch may run at the same time. Further ones get `unavailable`. Default: 1000. */
  readonly maxWatchers?: number;
  /**
   * Returns a name for the client of a call, such as its address. One client may have at most a quarter of `maxWatchers`. Default: none.
   */
  readonly clientOf?: (context: HandlerContext) => string;
};

const MAX_WATCHERS = 1000;
/** The share of `maxWatchers` that one client may have at the most. */
const CLIENT_SHARE = 0.25;

/** How many services List returns at most. If there are more, it fails, as in gRPC's own servers. */
import { checkRuntime } from "../platform/runtime/check.ts";

const MAX_LISTED = 100;

/** Adds `grpc.health.v1.Health` to a router: Check, List and Watch over gRPC, gRPC-Web and Connect. */
export function addHealth(router: ConnectRouter, health: Health, options: HealthServiceOptions = {}): ConnectRouter {
  checkRuntime("connect-grpc-health");
  const { maxWatchers = MAX_WATCHERS, clientOf, ...routerOptions } = options;
  const enter = clientOf === undefined ? () => () => {} : admission(Math.ceil(maxWatchers * CLIENT_SHARE), clientOf);
  return router.service(HealthService, healthService(health, maxWatchers, enter), routerOptions);
}

type Enter = (context: HandlerContext) => () => void;

/** Limits the watches of a client. @returns a function that counts a watch and returns a function that ends it. @throws ConnectError */
function admission(most: number, clientOf: (context: HandlerContext) => string): Enter {
  const watches = new Map<string, number>();
  return (context) => {
    const client = clientOf(context);
    const count = watches.get(client) ?? 0;
    if (count >= most) throw new ConnectError("too many watchers of one client", Code.ResourceExhausted);
    watches.set(client, count + 1);
    return () => {
      const left = (watches.get(client) ?? 1) - 1;
      if (left === 0) watches.delete(client);
      else watches.set(client, left);
    };
  };
}

function healthService(health: Health, maxWatchers: number, enter: Enter): ServiceImpl<typeof HealthService> {
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

    async *watch({ service }, context) {
      if (health.watchers >= maxWatchers) throw new ConnectError("too many watchers", Code.Unavailable);
      const leave = enter(context);
      try {
        for await (const status of watchStatus(health, service, context.signal)) yield { status };
      } finally {
        leave();
      }
    },
  };
}

/** Yields the current status and each change; SERVICE_UNKNOWN if there is no such service. It ends with `signal`. */
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
