import { create, type FileRegistry, fromBinary, type MessageInitShape } from "@bufbuild/protobuf";
import { type FileDescriptorProto, FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import {
  ServerReflection,
  ServerReflectionRequestSchema,
  type ServerReflectionResponse,
} from "../../../gen/grpc/reflection/v1/reflection_pb.ts";
import { createRegistryOf } from "../routes/descriptor-set.ts";

type Question = NonNullable<MessageInitShape<typeof ServerReflectionRequestSchema>["messageRequest"]>;

/** How long the whole conversation may take. */
const TIMEOUT_MS = 10_000;
/** Older servers have only the version before `v1`; its messages are the same. */
const VERSIONS = ["grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"];

/**
 * Reads the descriptors of all services of a server by gRPC server reflection.
 * @throws ConnectError if the server is away or has no reflection
 */
export async function reflectServices(transport: Transport): Promise<FileRegistry> {
  let last: unknown;
  for (const typeName of VERSIONS) {
    try {
      return await new Conversation(transport, typeName).readAll();
    } catch (error) {
      if (ConnectError.from(error).code !== Code.Unimplemented) throw error;
      last = error;
    }
  }
  throw new ConnectError("the upstream has no server reflection", Code.Unimplemented, undefined, undefined, last);
}

class Conversation {
  readonly #transport: Transport;
  readonly #method: typeof ServerReflection.method.serverReflectionInfo;
  readonly #files = new Map<string, FileDescriptorProto>();

  constructor(transport: Transport, typeName: string) {
    const method = ServerReflection.method.serverReflectionInfo;
    this.#transport = transport;
    this.#method = { ...method, parent: { ...ServerReflection, typeName } };
  }

  async readAll(): Promise<FileRegistry> {
    const listed = await this.#ask({ case: "listServices", value: "*" });
    if (listed.messageResponse.case !== "listServicesResponse") throw unexpected(listed);
    for (const { name } of listed.messageResponse.value.service) {
      if (!/^grpc\.(?:reflection|health)\./.test(name)) await this.#add({ case: "fileContainingSymbol", value: name });
    }
    for (let missing = this.#missing(); missing !== undefined; missing = this.#missing()) {
      await this.#add({ case: "fileByFilename", value: missing });
    }
    try {
      return createRegistryOf(this.#inOrder());
    } catch (cause) {
      // @grpc/reflection drops imports and options (grpc-node issue 2595).
      throw new Error("the descriptors of the server reflection are incomplete: use --descriptors", { cause });
    }
  }

  async #ask(messageRequest: Question): Promise<ServerReflectionResponse> {
    async function* questions() {
      yield create(ServerReflectionRequestSchema, { messageRequest });
    }
    const response = await this.#transport.stream(this.#method, undefined, TIMEOUT_MS, undefined, questions());
    let first: ServerReflectionResponse | undefined;
    for await (const message of response.message) first ??= message;
    if (first === undefined) throw new ConnectError("no response to server reflection", Code.Unimplemented);
    return first;
  }

  async #add(question: Question): Promise<void> {
    const response = await this.#ask(question);
    if (response.messageResponse.case !== "fileDescriptorResponse") throw unexpected(response);
    for (const bytes of response.messageResponse.value.fileDescriptorProto) {
      const file = fromBinary(FileDescriptorProtoSchema, bytes);
      this.#files.set(file.name, file);
    }
  }

  /** A file that another one imports and that the server has not sent. */
  #missing(): string | undefined {
    for (const { dependency } of this.#files.values()) {
      const missing = dependency.find((name) => !this.#files.has(name));
      if (missing !== undefined) return missing;
    }
    return undefined;
  }

  /** Imported files come first. */
  #inOrder(): FileDescriptorProto[] {
    const ordered = new Set<FileDescriptorProto>();
    const add = (file: FileDescriptorProto) => {
      for (const name of file.dependency) {
        const imported = this.#files.get(name);
        if (imported !== undefined && !ordered.has(imported)) add(imported);
      }
      ordered.add(file);
    };
    for (const file of this.#files.values()) add(file);
    return [...ordered];
  }
}

function unexpected({ messageResponse }: ServerReflectionResponse): ConnectError {
  const reason = messageResponse.case === "errorResponse" ? messageResponse.value.errorMessage : messageResponse.case;
  return new ConnectError(`server reflection: ${reason ?? "empty response"}`, Code.Internal);
}
