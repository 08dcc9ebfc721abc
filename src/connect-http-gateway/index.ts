/** The gateway in front of remote servers, and the transport it uses for gRPC. */
export { type GatewayArguments, parseArguments } from "./arguments.ts";
export { type Gateway, startGateway } from "./gateway.ts";
export { createGrpcUpstream, type GrpcUpstreamOptions } from "./grpc-transport.ts";
export type { WriteLog } from "./request-log.ts";
export { USAGE } from "./usage.ts";
