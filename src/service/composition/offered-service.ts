import type { DescMethod, DescService } from "@bufbuild/protobuf";
import type { ConnectRouter, ConnectRouterOptions, ServiceImpl } from "@connectrpc/connect";
import type { RouteTable } from "connect-http-routes";
import { validated } from "../api/gates/validation.ts";
import { withOutcomes } from "../api/outcomes.ts";

export type OfferedService = {
  readonly service: DescService;
  readonly register: (router: ConnectRouter) => unknown;
  /** The JSON routes of the service, if it has any. */
  readonly table: RouteTable | undefined;
};

/** @param options those of all RPCs, or a function that returns those of one */
export function offer<Service extends DescService>(
  service: Service,
  handlers: ServiceImpl<Service>,
  table?: RouteTable,
  options?: ConnectRouterOptions | ((method: DescMethod) => ConnectRouterOptions),
): OfferedService {
  const checked = validated(service, handlers);
  if (typeof options !== "function") {
    return { service, table, register: (router) => router.service(service, checked, options) };
  }
  const register = (router: ConnectRouter) => {
    for (const method of service.methods) {
      const call = checked[method.localName as keyof typeof checked];
      router.rpc(method, call as Parameters<ConnectRouter["rpc"]>[1], options(method));
    }
  };
  return { service, table, register };
}

/** Returns the paths of the methods that stream their responses. */
export function streamsOf(services: readonly OfferedService[]): ReadonlySet<string> {
  const methods = services.flatMap(({ service }) => service.methods);
  const streams = methods.filter(({ methodKind }) => methodKind === "server_streaming");
  return new Set(streams.map(({ name, parent }) => `/${parent.typeName}/${name}`));
}

/** Registers the services of an API. */
export type ApiRoutes = (router: ConnectRouter) => ConnectRouter;

/** Returns what registers services, and reports the outcomes of their calls. */
export function routesOf(services: readonly OfferedService[], outcomes: Parameters<typeof withOutcomes>[1]): ApiRoutes {
  return (router) => {
    const measured = withOutcomes(router, outcomes);
    for (const { register } of services) register(measured);
    return measured;
  };
}
