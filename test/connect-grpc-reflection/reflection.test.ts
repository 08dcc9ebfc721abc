/** The reflection package on a Connect server of its own, in both versions of the protocol. */
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { clone, create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import {
  type DescriptorProto,
  type FileDescriptorProto,
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
} from "@bufbuild/protobuf/wkt";
import { Code, type ConnectError } from "@connectrpc/connect";
import { connectNodeAdapter, createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  ServerReflectionRequestSchema,
  type ServerReflectionResponse,
  ServerReflection as V1,
} from "../../gen/grpc/reflection/v1/reflection_pb.ts";
import { ServerReflection as V1Alpha } from "../../gen/grpc/reflection/v1alpha/reflection_pb.ts";
import { addReflection } from "../../src/connect-grpc-reflection/index.ts";
import { reflectServices } from "../../src/connect-http-gateway/reflection.ts";
import { RelayService } from "../connect-http-routes/gen/relay/v1/relay_pb.ts";
import { RichService } from "../connect-http-routes/gen/rich/v1/rich_pb.ts";
import { type Listener, openHttp2 } from "../connect-http-routes/support/servers.ts";

const run = promisify(execFile);

let listener: Listener;
beforeAll(async () => {
  const routes: Parameters<typeof connectNodeAdapter>[0]["routes"] = (router) => {
    addReflection(router).service(RichService, {}).service(RelayService, {});
  };
  listener = await openHttp2(connectNodeAdapter({ routes }));
});
afterAll(() => listener[Symbol.asyncDispose]());

type Question = Exclude<MessageInitShape<typeof ServerReflectionRequestSchema>["messageRequest"], undefined>;

/** Returns the responses to all questions of one stream. */
async function ask(version: typeof V1 | typeof V1Alpha, ...questions: Question[]): Promise<ServerReflectionResponse[]> {
  const transport = createGrpcTransport({ baseUrl: listener.origin });
  async function* requests() {
    for (const messageRequest of questions) {
      yield create(ServerReflectionRequestSchema, { host: "here", messageRequest });
    }
  }
  const method = { ...V1.method.serverReflectionInfo, parent: { ...V1, typeName: version.typeName } };
  const { message } = await transport.stream(method, undefined, undefined, undefined, requests());
  const responses: ServerReflectionResponse[] = [];
  for await (const response of message) responses.push(response);
  return responses;
}

function filesOf({ messageResponse }: ServerReflectionResponse): FileDescriptorProto[] {
  if (messageResponse.case !== "fileDescriptorResponse") throw new Error(`it is ${messageResponse.case}`);
  return messageResponse.value.fileDescriptorProto.map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes));
}

const namesOf = (response: ServerReflectionResponse | undefined) =>
  filesOf(response as ServerReflectionResponse).map(({ name }) => name);

describe.each([V1, V1Alpha])("$typeName", (version) => {
  const only = async (question: Question) => (await ask(version, question))[0] as ServerReflectionResponse;

  test("lists every service of the router, whenever it was added", async () => {
    const { messageResponse } = await only({ case: "listServices", value: "*" });
    expect(messageResponse).toMatchObject({
      case: "listServicesResponse",
      value: {
        service: [V1.typeName, V1Alpha.typeName, RelayService.typeName, RichService.typeName].map((name) => ({ name })),
      },
    });
  });

  test("returns a file by its name, with all that it imports", async () => {
    const names = namesOf(await only({ case: "fileByFilename", value: "rich/v1/rich.proto" }));
    expect(names[0]).toBe("rich/v1/rich.proto");
    expect(names).toEqual(expect.arrayContaining(["google/api/http.proto", "google/protobuf/descriptor.proto"]));
  });

  test.each([
    ["a service", "rich.v1.RichService", "rich/v1/rich.proto"],
    ["a method", "relay.v1.RelayService.Get", "relay/v1/relay.proto"],
    ["a field", "google.api.HttpRule.get", "google/api/http.proto"],
    ["a oneof", "google.api.HttpRule.pattern", "google/api/http.proto"],
    ["a nested enum", "google.protobuf.FieldDescriptorProto.Type", "google/protobuf/descriptor.proto"],
    ["a value of it", "google.protobuf.FieldDescriptorProto.TYPE_INT32", "google/protobuf/descriptor.proto"],
    ["a value of an enum", "google.protobuf.NULL_VALUE", "google/protobuf/struct.proto"],
    ["an extension", "google.api.http", "google/api/annotations.proto"],
  ])("finds the file of %s", async (_, value, file) => {
    expect(namesOf(await only({ case: "fileContainingSymbol", value }))[0]).toBe(file);
  });

  test("finds the file of an extension by its number, and the numbers of all", async () => {
    const containingType = "google.protobuf.MethodOptions";
    const value = { containingType, extensionNumber: 72295728 };
    expect(namesOf(await only({ case: "fileContainingExtension", value }))[0]).toBe("google/api/annotations.proto");
    const numbers = await only({ case: "allExtensionNumbersOfType", value: containingType });
    expect(numbers.messageResponse).toMatchObject({
      case: "allExtensionNumbersResponse",
      value: { baseTypeName: containingType, extensionNumber: [72295728] },
    });
    const none = await only({ case: "allExtensionNumbersOfType", value: "google.api.HttpRule" });
    expect(none.messageResponse).toMatchObject({ value: { extensionNumber: [] } });
  });

  test.each<Question>([
    { case: "fileByFilename", value: "nowhere.proto" },
    { case: "fileContainingSymbol", value: "rich.v1.Nothing" },
    { case: "fileContainingSymbol", value: "" },
    { case: "fileContainingExtension", value: { containingType: "google.protobuf.MethodOptions", extensionNumber: 1 } },
    { case: "fileContainingExtension", value: { containingType: "no.Message", extensionNumber: 1 } },
    { case: "allExtensionNumbersOfType", value: "no.Message" },
  ])("what is not there is an error response with the request, and the stream goes on: $case", async (question) => {
    const [missing, next] = await ask(version, question, { case: "listServices", value: "" });
    expect(missing).toMatchObject({
      validHost: "here",
      originalRequest: { host: "here", messageRequest: question },
      messageResponse: { case: "errorResponse", value: { errorCode: 5, errorMessage: "not found" } },
    });
    expect(next?.messageResponse.case).toBe("listServicesResponse");
  });

  test("a file that was sent is not sent again on its stream, but when it is asked for", async () => {
    const [first, second, third] = await ask(
      version,
      { case: "fileContainingSymbol", value: "rich.v1.RichService" },
      { case: "fileContainingSymbol", value: "relay.v1.RelayService" },
      { case: "fileByFilename", value: "google/api/http.proto" },
    );
    expect(namesOf(first)).toContain("google/api/http.proto");
    expect(namesOf(second)).toEqual(["relay/v1/relay.proto"]);
    expect(namesOf(third)).toEqual(["google/api/http.proto"]);
  });

  test("a request that asks for nothing ends the stream", async () => {
    const failure = await ask(version, { case: undefined }).catch((error: unknown) => error);
    expect((failure as ConnectError).code).toBe(Code.InvalidArgument);
  });
});

/** Serializes a file without its unknown fields and JSON names, so that the output of buf and of the generated code can be compared. */
function comparable(file: FileDescriptorProto): Uint8Array {
  const copy = clone(FileDescriptorProtoSchema, file);
  // buf adds an unknown field with facts about its module.
  copy.$unknown = [];
  const strip = (message: DescriptorProto) => {
    for (const field of [...message.field, ...message.extension]) field.jsonName = "";
    for (const nested of message.nestedType) strip(nested);
  };
  for (const message of copy.messageType) strip(message);
  for (const extension of copy.extension) extension.jsonName = "";
  return toBinary(FileDescriptorProtoSchema, copy);
}

test("the descriptors are those that the compiler makes, options and imports included", async () => {
  const directory = mkdtempSync(join(tmpdir(), "reflection-"));
  const file = join(directory, "set.binpb");
  await run("node_modules/.bin/buf", ["build", "test/connect-http-routes/proto", "--exclude-source-info", "-o", file]);
  const compiled = fromBinary(FileDescriptorSetSchema, readFileSync(file)).file;
  rmSync(directory, { recursive: true });
  const [rich, relay] = await ask(
    V1,
    { case: "fileContainingSymbol", value: "rich.v1.RichService" },
    { case: "fileContainingSymbol", value: "relay.v1.RelayService" },
  );
  const reflected = [rich, relay].flatMap((one) => filesOf(one as ServerReflectionResponse));
  // The files of google.protobuf come from two releases of protobuf, so they are not compared.
  const own = reflected.filter(({ name }) => !name.startsWith("google/protobuf/"));
  // No service of the listener uses this file.
  const unserved = "legacy/v1/legacy.proto";
  expect(own.map(({ name }) => name).sort()).toEqual(
    compiled
      .map(({ name }) => name)
      .filter((name) => !name.startsWith("google/protobuf/") && name !== unserved)
      .sort(),
  );
  for (const one of own) {
    const other = compiled.find(({ name }) => name === one.name) as FileDescriptorProto;
    expect(comparable(one), one.name).toEqual(comparable(other));
  }
});

test("the gateway learns the services from it", async () => {
  const registry = await reflectServices(createGrpcTransport({ baseUrl: listener.origin }));
  expect(registry.getService(RichService.typeName)?.methods.length).toBe(RichService.methods.length);
});

test.each(["grpc-v1", "grpc-v1alpha"])("a client in Go reads methods by %s", async (version) => {
  const { stdout } = await run("node_modules/.bin/buf", [
    ...["curl", "--http2-prior-knowledge", "--protocol", "grpc", "--reflect", "--reflect-protocol", version],
    ...["--list-methods", listener.origin],
  ]);
  for (const { name } of RelayService.methods) expect(stdout).toContain(`relay.v1.RelayService/${name}\n`);
});

test("only the given services are listed", async () => {
  const narrow = await openHttp2(
    connectNodeAdapter({
      routes: (router) => void addReflection(router.service(RichService, {}), { services: [RelayService] }),
    }),
  );
  const { stdout } = await run("node_modules/.bin/buf", [
    ...["curl", "--http2-prior-knowledge", "--protocol", "grpc", "--reflect", "--list-services", narrow.origin],
  ]);
  await narrow[Symbol.asyncDispose]();
  expect(stdout).toBe("relay.v1.RelayService\n");
});
