/** gRPC server reflection, v1 and v1alpha, for servers on connect-es. */
export { addReflection, type ReflectionOptions } from "./service.ts";
