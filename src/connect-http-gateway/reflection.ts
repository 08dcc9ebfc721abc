import { create, type FileRegistry, fromBinary, type MessageInitShape } from "@bufbuild/protobuf";
import { type FileDescriptorProto, FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { createRegistryOf } from "connect-http-routes";
import {
  ServerReflection,
  ServerReflectionRequestSchema,
  type ServerReflectionResponse,
} from "../../gen/grpc/reflection/v1/reflection_pb.ts";

type Question = NonNullable<MessageInitShape<typeof ServerReflectionRequestSchema>["messageRequest"]>;

/** Limits on the gateway's resources while an upstream describes itself. */
const LIMITS = {
  /** How long all calls of reflection together may take. */
  timeoutMs: 10_000,
  maxFiles: 5_000,
  /** How many bytes the files may have together. */
  maxBytes: 64 * 1024 * 1024,
  /** A monotonic clock, in milliseconds. */
  now: () => performance.now(),
};
export type ReflectionLimits = Readonly<typeof LIMITS>;
/** How many characters of a text from the upstream are reported. */
const MAX_REPORTED_LENGTH = 200;
/** The versions of reflection. Older servers have only `v1alpha`, whose messages are the same as those of `v1`. */
const VERSIONS = ["grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"];

/**
 * Reads the descriptors of all services of a server by gRPC server reflection.
 * @throws ConnectError if the server cannot be reached, has no reflection or exceeds a limit
 * @throws Error if its descriptors are incomplete
 */
export async function reflectServices(
  transport: Transport,
  given: Partial<ReflectionLimits> = {},
): Promise<FileRegistry> {
  const limits = { ...LIMITS, ...given };
  const deadlineMs = limits.now() + limits.timeoutMs;
  let last: unknown;
  for (const typeName of VERSIONS) {
    try {
      return await new Conversation(transport, typeName, limits, deadlineMs).readAll();
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
  readonly #limits: ReflectionLimits;
  readonly #deadlineMs: number;
  readonly #files = new Map<string, FileDescriptorProto>();
  /** The full names of the services that the files describe. */
  readonly #services = new Set<string>();
  #bytes = 0;

  constructor(transport: Transport, typeName: string, limits: ReflectionLimits, deadlineMs: number) {
    const method = ServerReflection.method.serverReflectionInfo;
    this.#transport = transport;
    this.#method = { ...method, parent: { ...ServerReflection, typeName } };
    this.#limits = limits;
    this.#deadlineMs = deadlineMs;
  }

  async readAll(): Promise<FileRegistry> {
    const listed = await this.#ask({ case: "listServices", value: "*" });
    if (listed.messageResponse.case !== "listServicesResponse") throw unexpected(listed);
    for (const { name } of listed.messageResponse.value.service) {
      if (/^grpc\.(?:reflection|health)\./.test(name) || this.#services.has(name)) continue;
      await this.#add({ case: "fileContainingSymbol", value: name });
    }
    // A missing import is requested at once, so the map grows while the loop reads it.
    for (const { dependency } of this.#files.values()) {
      for (const name of dependency) if (!this.#files.has(name)) await this.#addImport(name);
    }
    try {
      return createRegistryOf(this.#inOrder());
    } catch (cause) {
      // @grpc/reflection drops imports and options (grpc-node issue 2595), so its files cannot be resolved.
      throw incomplete("", cause);
    }
  }

  async #ask(messageRequest: Question): Promise<ServerReflectionResponse> {
    const timeoutMs = Math.ceil(this.#deadlineMs - this.#limits.now());
    if (timeoutMs <= 0) throw new ConnectError("the server reflection takes too long", Code.DeadlineExceeded);
    async function* questions() {
      yield create(ServerReflectionRequestSchema, { messageRequest });
    }
    const response = await this.#transport.stream(this.#method, undefined, timeoutMs, undefined, questions());
    for await (const message of response.message) return message;
    throw new ConnectError("no response to server reflection", Code.Unimplemented);
  }

  async #addImport(name: string): Promise<void> {
    await this.#add({ case: "fileByFilename", value: name });
    if (!this.#files.has(name)) throw incomplete(`: ${shorten(name)} is not among them`);
  }

  async #add(question: Question): Promise<void> {
    const response = await this.#ask(question);
    if (response.messageResponse.case !== "fileDescriptorResponse") throw unexpected(response);
    for (const bytes of response.messageResponse.value.fileDescriptorProto) {
      const file = fromBinary(FileDescriptorProtoSchema, bytes);
      // Some servers send the same imports with each response.
      if (this.#files.has(file.name)) continue;
      this.#files.set(file.name, file);
      for (const { name } of file.service) this.#services.add(file.package === "" ? name : `${file.package}.${name}`);
      this.#bytes += bytes.byteLength;
      if (this.#bytes > this.#limits.maxBytes) throw tooLarge(`${this.#limits.maxBytes} bytes`);
      if (this.#files.size > this.#limits.maxFiles) throw tooLarge(`${this.#limits.maxFiles} files`);
    }
  }

  /** Returns the files in an order in which imported files come before those that import them. */
  #inOrder(): FileDescriptorProto[] {
    const visited = new Set<string>();
    const ordered: FileDescriptorProto[] = [];
    const add = (file: FileDescriptorProto) => {
      // The check also ends the recursion for files that import each other. The registry refuses such files later.
      if (visited.has(file.name)) return;
      visited.add(file.name);
      for (const name of file.dependency) {
        const imported = this.#files.get(name);
        if (imported !== undefined) add(imported);
      }
      ordered.push(file);
    };
    for (const file of this.#files.values()) add(file);
    return ordered;
  }
}

function unexpected({ messageResponse }: ServerReflectionResponse): ConnectError {
  const reason = messageResponse.case === "errorResponse" ? messageResponse.value.errorMessage : messageResponse.case;
  return new ConnectError(`server reflection: ${shorten(reason ?? "empty response")}`, Code.Internal);
}

function incomplete(what: string, cause?: unknown): Error {
  return new Error(`the descriptors of the server reflection are incomplete${what}: use --descriptors`, { cause });
}

function tooLarge(limit: string): ConnectError {
  return new ConnectError(`the server reflection sends more than ${limit}: use --descriptors`, Code.ResourceExhausted);
}

function shorten(text: string): string {
  return text.slice(0, MAX_REPORTED_LENGTH);
}
