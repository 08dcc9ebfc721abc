/** The gRPC health checking protocol, grpc.health.v1, for servers on connect-es. */
export { Health, type HealthOptions, ServingStatus } from "./health.ts";
export { addHealth, type HealthServiceOptions } from "./service.ts";
