/** A stock gRPC server: @grpc/grpc-js with the services of relay.proto as @grpc/proto-loader reads them. */
import { join } from "node:path";
import type { PeerCertificate } from "node:tls";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import {
  type Deadline,
  Metadata,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServerReadableStream,
  type ServerUnaryCall,
  type ServerWritableStream,
  type ServiceDefinition,
  type sendUnaryData,
  status,
} from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { ReflectionService } from "@grpc/reflection";
import { HealthImplementation } from "grpc-health-check";
import {
  ServerReflection,
  type ServerReflectionRequest,
  type ServerReflectionResponse,
} from "../../../gen/grpc/reflection/v1/reflection_pb.ts";
import type { Pem } from "../../support/certificate.ts";

const ROOT = join(import.meta.dirname, "../../..");

type Json = { name: string; number: string; how: string; file?: { contentType: string; data: Buffer } };
type Call = {
  readonly metadata: Metadata;
  getDeadline(): Deadline;
  getAuthContext(): { readonly sslPeerCertificate?: PeerCertificate };
  sendMetadata(metadata: Metadata): void;
};

export interface GrpcServer extends AsyncDisposable {
  readonly port: number;
  /** Returns the name in the certificate of the last caller, undefined if it had none. */
  lastPeer(): string | undefined;
  /** Returns the metadata of the last call. */
  lastMetadata(): Metadata;
  /** Returns the deadline of the last call, in ms since the epoch. */
  deadlineMs(): number;
  /** Resolves when the next call is cancelled. */
  cancelled(): Promise<void>;
  /** Closes every connection at once, as if the process of the server had died. */
  die(): void;
  setHealth(serving: boolean): void;
}

/**
 * Adds server reflection like that of older servers in other languages: only `v1alpha`, and one file per response. Its files keep their
 * options and imports, which @grpc/reflection drops.
 */
function addReflection(server: Server, set: Uint8Array): void {
  const files = fromBinary(FileDescriptorSetSchema, set).file;
  const { input, output } = ServerReflection.method.serverReflectionInfo;
  const method = {
    path: "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
    requestStream: true,
    responseStream: true,
    requestSerialize: (request: ServerReflectionRequest) => Buffer.from(toBinary(input, request)),
    requestDeserialize: (bytes: Buffer) => fromBinary(input, bytes),
    responseSerialize: (response: ServerReflectionResponse) => Buffer.from(toBinary(output, response)),
    responseDeserialize: (bytes: Buffer) => fromBinary(output, bytes),
  };
  const respond = ({ messageRequest: { case: kind, value } }: ServerReflectionRequest) => {
    if (kind === "listServices") {
      const service = files.flatMap((f) => f.service.map(({ name }) => ({ name: `${f.package}.${name}` })));
      return create(output, { messageResponse: { case: "listServicesResponse", value: { service } } });
    }
    const file = files.find((f) => f.name === value || f.service.some(({ name }) => `${f.package}.${name}` === value));
    if (file === undefined) {
      const error = { errorCode: status.NOT_FOUND, errorMessage: `no ${String(value)}` };
      return create(output, { messageResponse: { case: "errorResponse", value: error } });
    }
    const fileDescriptorProto = [toBinary(FileDescriptorProtoSchema, file)];
    return create(output, { messageResponse: { case: "fileDescriptorResponse", value: { fileDescriptorProto } } });
  };
  server.addService(
    { ServerReflectionInfo: method },
    {
      ServerReflectionInfo(call: ServerDuplexStream<ServerReflectionRequest, ServerReflectionResponse>) {
        call.on("data", (request: ServerReflectionRequest) => call.write(respond(request)));
        call.on("end", () => call.end());
      },
    },
  );
}

/**
 * @param port 0 for any free port, or the port of an earlier server, to restart it
 * @param tls the certificate to serve TLS with, and the authority of the certificates that it demands from clients
 * @param reflection a FileDescriptorSet to serve by reflection; by default @grpc/reflection makes one
 */
export async function startGrpcServer(
  port = 0,
  reflection?: Uint8Array,
  tls?: Pem & { readonly clientCa?: string },
): Promise<GrpcServer> {
  const definition = loadSync("relay/v1/relay.proto", {
    includeDirs: [join(ROOT, "test/connect-http-routes/proto"), join(ROOT, "proto")],
    longs: String,
    defaults: true,
  });
  let metadata = new Metadata();
  let peer: string | undefined;
  let deadline: Deadline = Number.POSITIVE_INFINITY;
  let cancellation = Promise.withResolvers<void>();
  const server = new Server();

  /** Misbehaves as the field `how` of the request demands. Returns whether that ends the call. */
  function behave(call: Call & NodeJS.EventEmitter, item: Json, fail: (error: object) => void): boolean {
    metadata = call.metadata;
    peer = call.getAuthContext().sslPeerCertificate?.subject.CN?.toString();
    deadline = call.getDeadline();
    call.once("cancelled", () => {
      cancellation.resolve();
      cancellation = Promise.withResolvers();
    });
    const trailers = new Metadata();
    trailers.set("x-trailer", "late");
    if (item.how === "headers") {
      const headers = new Metadata();
      headers.set("x-reply", "early");
      headers.add("set-cookie", "a=1");
      call.sendMetadata(headers);
    }
    if (item.how === "fail") fail({ code: status.FAILED_PRECONDITION, details: "as asked", metadata: trailers });
    if (item.how === "detail") {
      // The bytes of google.rpc.Status {code: 8, message: "m", details: [Any of relay.v1.Item {name: "detail"}]}.
      const any = Buffer.concat([
        Buffer.from([0x0a, 33]),
        Buffer.from("type.googleapis.com/relay.v1.Item"),
        Buffer.from([0x12, 8, 0x0a, 6]),
        Buffer.from("detail"),
      ]);
      const details = Buffer.concat([Buffer.from([0x08, 8, 0x12, 1, 0x6d, 0x1a, any.length]), any]);
      trailers.set("grpc-status-details-bin", details);
      fail({ code: status.RESOURCE_EXHAUSTED, details: "m", metadata: trailers });
    }
    return ["fail", "detail", "hang"].includes(item.how);
  }

  server.addService(definition["relay.v1.RelayService"] as ServiceDefinition, {
    get(call: ServerUnaryCall<Json, Json>, respond: sendUnaryData<object>) {
      if (behave(call, call.request, (error) => respond(error))) return;
      const trailers = new Metadata();
      trailers.set("x-trailer", "late");
      respond(null, call.request, trailers);
    },
    count(call: ServerWritableStream<Json, object>) {
      const { name, number, how } = call.request;
      if (how !== "hang first") for (let n = 1; n <= Number(number); n++) call.write({ name, number: n });
      if (!behave(call, call.request, (error) => call.emit("error", error)) && how !== "hang first") call.end();
    },
    sum(call: ServerReadableStream<Json, object>, respond: sendUnaryData<object>) {
      let [sum, messages, name] = [0, 0, ""];
      let settled = false;
      call.on("data", (item: Json) => {
        if (settled) return;
        settled = behave(call, item, (error) => respond(error));
        sum += Number(item.number);
        messages++;
        name = item.name;
      });
      call.on("end", () => settled || respond(null, { sum, messages, name }));
      call.on("error", () => {});
    },
    upload(call: ServerReadableStream<Json, object>, respond: sendUnaryData<object>) {
      let [sum, messages] = [0, 0];
      call.on("data", (item: Json) => {
        sum += item.file?.data.length ?? 0;
        messages++;
      });
      call.on("end", () => respond(null, { sum, messages }));
    },
    chat(call: ServerDuplexStream<Json, object>) {
      call.on("data", (item: Json) => {
        if (behave(call, item, (error) => call.emit("error", error))) return;
        call.write({ name: item.name, number: Number(item.number) * 2 });
      });
      call.on("end", () => call.end());
      call.on("error", () => {});
    },
    mirror(call: ServerDuplexStream<object, object>) {
      call.on("data", (piece: object) => call.write(piece));
      call.on("end", () => call.end());
    },
  });
  const health = new HealthImplementation({ "": "SERVING" });
  health.addToServer(server);
  if (reflection === undefined) new ReflectionService(definition).addToServer(server);
  else addReflection(server, reflection);
  const credentials =
    tls === undefined
      ? ServerCredentials.createInsecure()
      : ServerCredentials.createSsl(
          tls.clientCa === undefined ? null : Buffer.from(tls.clientCa),
          [{ private_key: Buffer.from(tls.key), cert_chain: Buffer.from(tls.cert) }],
          tls.clientCa !== undefined,
        );
  const bound = await new Promise<number>((resolve, reject) => {
    server.bindAsync(`127.0.0.1:${port}`, credentials, (error, at) => (error ? reject(error) : resolve(at)));
  });
  return {
    port: bound,
    lastPeer: () => peer,
    lastMetadata: () => metadata,
    deadlineMs: () => Number(deadline),
    cancelled: () => cancellation.promise,
    die: () => server.forceShutdown(),
    setHealth: (serving) => health.setStatus("", serving ? "SERVING" : "NOT_SERVING"),
    async [Symbol.asyncDispose]() {
      server.forceShutdown();
    },
  };
}
