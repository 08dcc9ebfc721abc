/** Tests upstreams whose server reflection returns an endless number of files, or takes endless time. */
import { once } from "node:events";
import { createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { create, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  ServerReflection,
  type ServerReflectionRequest,
  ServerReflectionResponseSchema,
} from "../../gen/grpc/reflection/v1/reflection_pb.ts";
import { createGrpcUpstream } from "../../src/connect-http-gateway/index.ts";
import { type ReflectionLimits, reflectServices } from "../../src/connect-http-gateway/reflection.ts";

type File = { readonly name: string; readonly imports?: readonly string[]; readonly bytes?: number };
/** The files that an upstream sends when it is asked for a name. */
type Files = (asked: string, context: HandlerContext) => readonly File[];

/** Starts a real gRPC server. Returns the names that it is asked for, and the result of reading its descriptors. */
async function reflect(files: Files, limits: Partial<ReflectionLimits> = {}, responses = 1) {
  const asked: string[] = [];
  const respond = ({ messageRequest }: ServerReflectionRequest, context: HandlerContext) => {
    if (messageRequest.case === "listServices") {
      const service = [{ name: "a.v1.A" }];
      return create(ServerReflectionResponseSchema, {
        messageResponse: { case: "listServicesResponse", value: { service } },
      });
    }
    const name = String(messageRequest.value);
    asked.push(name);
    const fileDescriptorProto = files(name, context).map(({ name, imports = [], bytes = 0 }) =>
      toBinary(
        FileDescriptorProtoSchema,
        create(FileDescriptorProtoSchema, {
          name,
          dependency: [...imports],
          package: "p".repeat(bytes),
        }),
      ),
    );
    return create(ServerReflectionResponseSchema, {
      messageResponse: { case: "fileDescriptorResponse", value: { fileDescriptorProto } },
    });
  };
  const adapter = connectNodeAdapter({
    routes: (router) =>
      router.service(ServerReflection, {
        async *serverReflectionInfo(requests, context) {
          for await (const request of requests) for (let i = 0; i < responses; i++) yield respond(request, context);
        },
      }),
  });
  const server = createServer(adapter);
  server.on("session", (session) => onTestFinished(() => session.destroy()));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const transport = createGrpcUpstream({ baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
  const error = await reflectServices(transport, limits).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  return { asked, error };
}

const numberOf = (name: string) => Number(/\d+/.exec(name)?.[0] ?? 0);
/** Each file imports another file, without end. */
const endless: Files = (asked) => [{ name: `${numberOf(asked)}.proto`, imports: [`${numberOf(asked) + 1}.proto`] }];

describe("server reflection", () => {
  test("asks once for a file that never comes", async () => {
    const { asked, error } = await reflect(() => [{ name: "a.proto", imports: ["b.proto", "c.proto"] }]);
    expect(asked).toEqual(["a.v1.A", "b.proto"]);
    expect(String(error)).toContain("incomplete: b.proto is not among them: use --descriptors");
  });

  test("asks once for a file that many import", async () => {
    const imports = ["common.proto"];
    const files = {
      "a.v1.A": [{ name: "a.proto", imports: ["b.proto", ...imports] }],
      "b.proto": [{ name: "b.proto", imports }],
    };
    const { asked, error } = await reflect((name) => files[name as keyof typeof files] ?? [{ name }]);
    expect([asked, error]).toEqual([["a.v1.A", "b.proto", "common.proto"], undefined]);
  });

  test("ends when there are too many files, or too many bytes in all of them", async () => {
    const files = await reflect(endless, { maxFiles: 20 });
    expect(files.error).toMatchObject({
      code: Code.ResourceExhausted,
      rawMessage: expect.stringContaining("20 files"),
    });
    expect(files.asked).toHaveLength(21);
    const large: Files = (asked, context) => endless(asked, context).map((file) => ({ ...file, bytes: 1_000 }));
    const bytes = await reflect(large, { maxBytes: 10_000 });
    expect(bytes.error).toMatchObject({ code: Code.ResourceExhausted });
    expect(bytes.asked).toHaveLength(10);
  });

  test("has one deadline for all questions", async () => {
    let nowMs = 0;
    const timeouts: number[] = [];
    const slow: Files = (asked, context) => {
      timeouts.push(context.timeoutMs() ?? Number.POSITIVE_INFINITY);
      nowMs += 100_000;
      return endless(asked, context);
    };
    const { asked, error } = await reflect(slow, { timeoutMs: 1_000_000, now: () => nowMs });
    expect(ConnectError.from(error).code).toBe(Code.DeadlineExceeded);
    expect(asked).toHaveLength(10);
    // The server computes a timeout from the time at which the request arrived, so it may be lower than the rest of the deadline.
    timeouts.forEach((timeoutMs, index) => {
      expect(timeoutMs).toBeLessThanOrEqual(1_000_000 - index * 100_000);
    });
  });

  test("reads one response to a question from a server that does not stop", async () => {
    const { asked, error } = await reflect((name) => [{ name }], {}, Number.POSITIVE_INFINITY);
    expect(error).toBeUndefined();
    expect(new Set(asked)).toEqual(new Set(["a.v1.A"]));
  });

  test("refuses files that import each other", async () => {
    const circle: Files = () => [
      { name: "a.proto", imports: ["b.proto"] },
      { name: "b.proto", imports: ["a.proto"] },
    ];
    expect(String((await reflect(circle)).error)).toContain("incomplete: use --descriptors");
  });
});
