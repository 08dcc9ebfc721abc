import type { DescService } from "@bufbuild/protobuf";
import type { ConnectRouter, ConnectRouterOptions, ServiceImpl } from "@connectrpc/connect";
import type { RouteTable } from "connect-http-routes";
import type { ValidatedService } from "../api/interceptors/request-validation.ts";

export type OfferedService = ValidatedService & {
  readonly register: (router: ConnectRouter) => unknown;
  /** The JSON routes of the service, if it has any. */
  readonly table: RouteTable | undefined;
};

export function offer<Service extends DescService>(
  service: Service,
  rules: ValidatedService["rules"],
  handlers: ServiceImpl<Service>,
  table?: RouteTable,
  options?: ConnectRouterOptions,
): OfferedService {
  return { service, rules, table, register: (router) => router.service(service, handlers, options) };
}
