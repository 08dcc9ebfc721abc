/** An upstream that ends a stream within a message, and a client whose message cannot be read. */
import { once } from "node:events";
import { createServer, type ServerHttp2Stream } from "node:http2";
import type { AddressInfo } from "node:net";
import { Code } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { describe, expect, onTestFinished, test } from "vitest";
import { createGrpcUpstream, parseArguments } from "../../src/connect-http-gateway/index.ts";
import { createUpstream } from "../../src/connect-http-gateway/upstream.ts";
import { createHttpHandler } from "../../src/connect-http-routes/index.ts";
import { RelayServiceRoutes } from "../connect-http-routes/gen/relay/v1/relay_http.ts";
import { RelayService } from "../connect-http-routes/gen/relay/v1/relay_pb.ts";
import { openHttp1 } from "../connect-http-routes/support/servers.ts";

const HEAD = { ":status": 200, "content-type": "application/grpc+proto" };
/** The message of gRPC for an item whose name is `a`, with its prefix of five bytes. */
const MESSAGE = Buffer.from([0, 0, 0, 0, 3, 0x0a, 1, 0x61]);
const UNAVAILABLE = { code: 14, message: "the upstream is unavailable", details: [] };

/** Starts an upstream whose streams are served by a function. */
async function startUpstream(serve: (stream: ServerHttp2Stream) => void): Promise<string> {
  const server = createServer();
  server.on("stream", (stream: ServerHttp2Stream) => {
    stream.on("error", () => {});
    serve(stream);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

describe.each([
  ["createGrpcTransport", createGrpcTransport],
  ["createGrpcUpstream", createGrpcUpstream],
])("over %s", (_, createTransport) => {
  const open = async (serve: (stream: ServerHttp2Stream) => void) => {
    const transport = createTransport({ baseUrl: await startUpstream(serve) });
    return openHttp1(createHttpHandler({ tables: [RelayServiceRoutes], transport }));
  };

  test.each([0, 2, 8])("a stream that is reset within a message, by code %i, is unavailable", async (code) => {
    for (const sent of [MESSAGE.subarray(0, 6), Buffer.concat([MESSAGE, MESSAGE.subarray(0, 6)])]) {
      await using front = await open((stream) => {
        stream.respond(HEAD);
        stream.write(sent, () => stream.close(code));
      });
      const { status, text } = await front.fetchRaw({ target: "/v1/counts/a" });
      const last = JSON.parse(text.trim().split("\n").at(-1) ?? "") as { error?: object };
      expect([status, last.error ?? last]).toEqual([expect.toBeOneOf([200, 503]), UNAVAILABLE]);
    }
  });

  test("a request message that cannot be read is 400, although the upstream has begun to respond", async () => {
    await using front = await open((stream) => stream.respond(HEAD));
    const headers = { "content-type": "application/x-ndjson" };
    const body = '{"number":1}\n{"number":"x"}\n';
    const { status } = await front.fetchRaw({ method: "POST", target: "/v1/sums/a", headers, body });
    expect(status).toBe(400);
  });
});

test.each([
  ["grpc-web", "application/grpc-web+proto"],
  ["grpc", "application/grpc+proto"],
])("a unary call over %s that is reset within its message is unavailable", async (protocol, type) => {
  const url = await startUpstream((stream) => {
    stream.respond({ ...HEAD, "content-type": type });
    stream.write(MESSAGE.subarray(0, 6), () => stream.close(2));
  });
  const args = parseArguments(["--upstream", url, "--protocol", protocol, "--descriptors", "none"]);
  const { transport, close } = createUpstream(args, () => {});
  onTestFinished(close);
  const call = transport.unary(RelayService.method.get, undefined, undefined, undefined, {});
  await expect(call).rejects.toMatchObject({ code: Code.Unavailable });
});
