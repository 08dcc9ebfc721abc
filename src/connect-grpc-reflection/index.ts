/** gRPC server reflection, v1 and v1alpha, for servers on connect-es. */
import type { DescFile, DescService } from "@bufbuild/protobuf";
import { Code, ConnectError, type ConnectRouter, type ConnectRouterOptions } from "@connectrpc/connect";
import { type ServerReflectionRequest, ServerReflection as V1 } from "../../gen/grpc/reflection/v1/reflection_pb.ts";
import {
  ServerReflection as V1Alpha,
  type ServerReflectionRequest as V1AlphaRequest,
} from "../../gen/grpc/reflection/v1alpha/reflection_pb.ts";
import { Files } from "./files.ts";

export type ReflectionOptions = ConnectRouterOptions & {
  /** The services that are listed. Default: all services that the router has at the first reflection request. */
  readonly services?: Iterable<DescService>;
  /** Files other than those of the services and their imports, such as files with extensions. */
  readonly files?: Iterable<DescFile>;
};

type Request = ServerReflectionRequest | V1AlphaRequest;

/** The parts that both versions of the protocol share. Their messages differ only in the package. */
type Response =
  | { case: "listServicesResponse"; value: { service: { name: string }[] } }
  | { case: "fileDescriptorResponse"; value: { fileDescriptorProto: Uint8Array[] } }
  | { case: "allExtensionNumbersResponse"; value: { baseTypeName: string; extensionNumber: number[] } }
  | { case: "errorResponse"; value: { errorCode: Code; errorMessage: string } };

type Contract = { readonly services: readonly string[]; readonly files: Files };

/** Adds `grpc.reflection.v1.ServerReflection`, and `v1alpha` of it, to a router. The descriptors are indexed at the first request. */
export function addReflection(router: ConnectRouter, options: ReflectionOptions = {}): ConnectRouter {
  const { services, files = [], ...routerOptions } = options;
  let known: Contract | undefined;
  const contract = (): Contract => {
    known ??= describe(services ?? router.handlers.map(({ service }) => service), files);
    return known;
  };
  async function* serverReflectionInfo<Version extends Request>(requests: AsyncIterable<Version>) {
    const sent = new Set<DescFile>();
    for await (const request of requests) {
      const messageResponse = respond(contract(), request, sent);
      yield { validHost: request.host, originalRequest: request, messageResponse };
    }
  }
  return router
    .service(V1, { serverReflectionInfo }, routerOptions)
    .service(V1Alpha, { serverReflectionInfo }, routerOptions);
}

function describe(services: Iterable<DescService>, files: Iterable<DescFile>): Contract {
  const unique = [...new Set(services)];
  return {
    services: unique.map(({ typeName }) => typeName).sort(),
    files: new Files([...unique.map(({ file }) => file), ...files]),
  };
}

/** Returns the response to a request. @param sent the files that the client has received on this stream; further ones are added */
function respond({ services, files }: Contract, { messageRequest }: Request, sent: Set<DescFile>): Response {
  switch (messageRequest.case) {
    case "listServices":
      return { case: "listServicesResponse", value: { service: services.map((name) => ({ name })) } };
    case "fileByFilename":
      return fileResponse(files, files.byName(messageRequest.value), sent);
    case "fileContainingSymbol":
      return fileResponse(files, files.bySymbol(messageRequest.value), sent);
    case "fileContainingExtension": {
      const { containingType, extensionNumber } = messageRequest.value;
      return fileResponse(files, files.byExtension(containingType, extensionNumber), sent);
    }
    case "allExtensionNumbersOfType": {
      const baseTypeName = messageRequest.value;
      const numbers = files.extensionNumbers(baseTypeName);
      if (numbers === undefined) return NOT_FOUND;
      return { case: "allExtensionNumbersResponse", value: { baseTypeName, extensionNumber: [...numbers] } };
    }
    case undefined:
      throw new ConnectError("the request asks for nothing that is known here", Code.InvalidArgument);
  }
}

const NOT_FOUND: Response = {
  case: "errorResponse",
  value: { errorCode: Code.NotFound, errorMessage: "not found" },
};

/** Responds with the file and those of its imports that were not sent before on this stream. */
function fileResponse(files: Files, file: DescFile | undefined, sent: Set<DescFile>): Response {
  if (file === undefined) return NOT_FOUND;
  const found = new Set([file]);
  // The loop also reaches the files that it adds, because a set is iterated in the order of its additions.
  for (const { dependencies } of found) for (const one of dependencies) if (!sent.has(one)) found.add(one);
  for (const one of found) sent.add(one);
  return {
    case: "fileDescriptorResponse",
    value: { fileDescriptorProto: [...found].map((one) => files.encode(one)) },
  };
}
