import type { DescMethod } from "@bufbuild/protobuf";
import {
  type ConnectRouter,
  type ConnectRouterOptions,
  createMethodImplSpec,
  createServiceImplSpec,
  type MethodImplSpec,
} from "@connectrpc/connect";
import { type UniversalHandlerOptions, validateUniversalHandlerOptions } from "@connectrpc/connect/protocol";

/** An RPC's implementation and the options of its registration. */
export interface RecordedRpc {
  readonly spec: MethodImplSpec;
  readonly options: UniversalHandlerOptions;
}

/**
 * Runs the function that registers services at a Connect adapter, and records the implementations. As in connect-es, each option of a
 * registration replaces that of the router, also `interceptors` as a whole, and the last of two registrations wins.
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
