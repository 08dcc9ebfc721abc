import type { DescMethod, DescService } from "@bufbuild/protobuf";
import type { ConnectRouter, ConnectRouterOptions, ServiceImpl } from "@connectrpc/connect";
import type { RouteTable } from "connect-http-routes";
import { validated } from "../api/gates/validation.ts";

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
