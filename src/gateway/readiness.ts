import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import {
  Health,
  HealthCheckRequestSchema,
  HealthCheckResponse_ServingStatus as ServingStatus,
} from "../../gen/grpc/health/v1/health_pb.ts";
import type { Upstream } from "./upstream.ts";

/** How long the upstream may take to respond to a probe, in milliseconds. */
const TIMEOUT_MS = 2_000;

/** Whether the upstream can serve requests, and if not, why. */
type Readiness = { readonly ready: true } | { readonly ready: false; readonly reason: string };

/** Calls the upstream's health service. A server without a health service is ready if it responds at all. */
export async function checkReadiness({ transport, isFull }: Upstream): Promise<Readiness> {
  // If the connections have no free stream, a probe would have to wait like any other call.
  if (isFull()) return { ready: false, reason: "the connections to the upstream have no free stream" };
  try {
    const request = create(HealthCheckRequestSchema);
    const { message } = await transport.unary(Health.method.check, undefined, TIMEOUT_MS, undefined, request);
    if (message.status === ServingStatus.SERVING) return { ready: true };
    return { ready: false, reason: `the upstream reports the status ${message.status}` };
  } catch (reason) {
    const error = ConnectError.from(reason, Code.Internal);
    if (error.code === Code.Unimplemented) return { ready: true };
    return { ready: false, reason: error.message };
  }
}
