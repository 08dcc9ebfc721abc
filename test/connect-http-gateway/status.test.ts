/**
 * Responses of gRPC servers whose status is not encoded as the protocol demands, and metadata named like properties of every JavaScript
 * object.
 */
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type ServerHttp2Stream } from "node:http2";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { create, toBinary } from "@bufbuild/protobuf";
import { Code, type ConnectError, encodeBinaryHeader } from "@connectrpc/connect";
import { expect, onTestFinished, test } from "vitest";
import { StatusSchema } from "../../gen/google/rpc/status_pb.ts";
import { createGrpcUpstream } from "../../src/connect-http-gateway/grpc-transport.ts";
import { SessionPool } from "../../src/platform/http2/session-pool.ts";
import { RelayService } from "../connect-http-routes/gen/relay/v1/relay_pb.ts";
import { scratch } from "../support/service.ts";
import { runGateway } from "./running.ts";

type Trailers = Readonly<Record<string, string>>;

/** Starts a server that responds to each call with these trailers. */
async function start(trailers: Trailers, isHeadOnly = false) {
  let seen: IncomingHttpHeaders = {};
  const server = createServer();
  server.on("stream", (stream: ServerHttp2Stream, headers) => {
    seen = headers;
    const head = { ":status": 200, "content-type": "application/grpc+proto" };
    if (isHeadOnly) return stream.respond({ ...head, ...trailers }, { endStream: true });
    stream.respond(head, { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers(trailers));
    stream.end(Buffer.alloc(5));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const pool = new SessionPool([baseUrl], { connections: 1, onFailure: () => {} });
  onTestFinished(() => {
    pool.close();
    server.close();
  });
  const transport = createGrpcUpstream({ baseUrl, sessionManager: pool });
  const unary = (metadata: [string, string][] = []) =>
    transport.unary(RelayService.method.get, undefined, undefined, metadata, {});
  const stream = async () => {
    const inputs = (async function* () {
      yield {};
    })();
    const { message } = await transport.stream(RelayService.method.count, undefined, undefined, undefined, inputs);
    for await (const _ of message);
  };
  return { unary, stream, seen: () => seen };
}

const details = (code: number) => encodeBinaryHeader(toBinary(StatusSchema, create(StatusSchema, { code })));
const NOT_FOUND = { "grpc-status": String(Code.NotFound), "grpc-message": "m" };

const STATUSES: readonly [name: string, trailers: Trailers, message: string][] = [
  ["a message with a bare percent sign", { ...NOT_FOUND, "grpc-message": "100% full" }, "100% full"],
  ["a message whose escapes are not UTF-8", { ...NOT_FOUND, "grpc-message": "a%20b %E2%28" }, "a%20b %E2%28"],
  ["details that are not base64", { ...NOT_FOUND, "grpc-status-details-bin": "!" }, "m"],
  ["details that are no message", { ...NOT_FOUND, "grpc-status-details-bin": "AAAA" }, "m"],
  ["details without a code", { ...NOT_FOUND, "grpc-status-details-bin": details(0) }, "m"],
  ["details with another code", { ...NOT_FOUND, "grpc-status-details-bin": details(Code.Unavailable) }, "m"],
];

test.each(STATUSES)("a status keeps its code with %s", async (_, trailers, rawMessage) => {
  for (const isHeadOnly of [false, true]) {
    const server = await start(trailers, isHeadOnly);
    for (const call of [server.unary, server.stream]) {
      const error = (await Promise.resolve(call()).catch((reason: unknown) => reason)) as ConnectError;
      expect(error).toMatchObject({ code: Code.NotFound, rawMessage, isWireError: true });
    }
  }
});

test("metadata may have the names of properties that every object has", async () => {
  const server = await start({ "grpc-status": "0" });
  await server.unary([
    ["constructor", "1"],
    ["__proto__", "2"],
  ]);
  expect(Object.entries(server.seen())).toEqual(
    expect.arrayContaining([
      ["constructor", "1"],
      ["__proto__", "2"],
    ]),
  );
});

test("a response that is no gRPC, such as a page of a proxy, is reported with its content type", async () => {
  const server = createServer((_, response) => {
    response.writeHead(200, { "content-type": "text/html" });
    response.end("<h1>Welcome</h1>");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const upstream = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const set = join(scratch(), "set.binpb");
  execFileSync("node_modules/.bin/buf", [
    "build",
    "test/connect-http-routes/proto",
    "--path",
    "test/connect-http-routes/proto/relay",
    "-o",
    set,
  ]);
  const gateway = await runGateway("--descriptors", set, "--upstream", upstream);
  expect((await fetch(`${gateway.origin}/v1/items/a`)).status).toBe(503);
  const line = await gateway.line(({ event }) => event === "upstream error");
  expect(line.reason).toContain('its content type is "text/html"');
});
