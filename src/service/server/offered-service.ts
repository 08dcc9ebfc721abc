import type { DescService } from "@bufbuild/protobuf";
import type { ConnectRouter, ConnectRouterOptions, ServiceImpl } from "@connectrpc/connect";
import type { RouteTable } from "connect-http-routes";
import { validated } from "../api/gates/validation.ts";
import type { Rules } from "../api/rules/model.ts";

export type OfferedService = {
  readonly service: DescService;
  readonly register: (router: ConnectRouter) => unknown;
  /** The JSON routes of the service, if it has any. */
  readonly table: RouteTable | undefined;
};

export function offer<Service extends DescService>(
  service: Service,
  rules: Rules,
  handlers: ServiceImpl<Service>,
  table?: RouteTable,
  options?: ConnectRouterOptions,
): OfferedService {
  const checked = validated(service, rules, handlers);
  return { service, table, register: (router) => router.service(service, checked, options) };
}
