import type { DescMethod } from "@bufbuild/protobuf";
import {
  type ConnectRouter,
  type ConnectRouterOptions,
  createMethodImplSpec,
  createServiceImplSpec,
  type MethodImplSpec,
} from "@connectrpc/connect";
import { type UniversalHandlerOptions, validateUniversalHandlerOptions } from "@connectrpc/connect/protocol";

/** An RPC's implementation, and the options under which it was registered. */
export interface RecordedRpc {
  readonly spec: MethodImplSpec;
  readonly options: UniversalHandlerOptions;
}

/**
 * Runs the function that registers services with a Connect adapter, and keeps what it registers. Options of a
 * registration replace those of the router, property by property, as in connect-es: `interceptors` given there are
 * the only ones. Of two registrations the last one counts, as in connect-node.
 */
export function recordRoutes(
  routes: (router: ConnectRouter) => void,
  rootOptions: ConnectRouterOptions,
): ReadonlyMap<DescMethod, RecordedRpc> {
  const root = validateUniversalHandlerOptions(rootOptions);
  const recorded = new Map<DescMethod, RecordedRpc>();
  const effective = (options: Partial<UniversalHandlerOptions> | undefined) =>
    options === undefined ? root : validateUniversalHandlerOptions({ ...root, ...options });
  const router: ConnectRouter = {
    handlers: [],
    service(service, implementation, options) {
      const { methods } = createServiceImplSpec(service, implementation);
      for (const spec of Object.values(methods)) recorded.set(spec.method, { spec, options: effective(options) });
      return router;
    },
    rpc(method, implementation, options) {
      recorded.set(method, { spec: createMethodImplSpec(method, implementation), options: effective(options) });
      return router;
    },
  };
  routes(router);
  return recorded;
}
