/** The command connect-http-gateway as a process. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import { join } from "node:path";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { sizeDelimitedDecodeStream } from "@bufbuild/protobuf/wire";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "vitest";
import { StatusSchema } from "../../gen/google/rpc/status_pb.ts";
import { ItemSchema } from "../connect-http-routes/gen/relay/v1/relay_pb.ts";
import { startGrpcServer } from "../connect-http-routes/support/grpc-server.ts";
import { until } from "../support/until.ts";
import { MAIN, type Running, runGateway, startRelay } from "./running.ts";

const { directory, set, setHealth, upstream, lastMetadata } = startRelay();

/** Sends a request, and closes its connection. */
async function cut({ origin }: Running, path: string): Promise<void> {
  const socket = connect(Number(new URL(origin).port), "127.0.0.1");
  socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`, () => socket.destroy());
  await once(socket, "close");
}

describe("connect-http-gateway", () => {
  test("serves what the server's reflection describes, with probes, over HTTP/1.1 and HTTP/2", async () => {
    const gateway = await runGateway(...upstream(), "--reflection");
    const response = await fetch(`${gateway.origin}/v1/items/a?number=7&secret=s`);
    expect([response.status, await response.json()]).toEqual([200, { name: "a", number: "7" }]);
    const request = await gateway.line(({ event }) => event === "request");
    expect(request).toMatchObject({
      method: "GET",
      path: "/v1/items/a",
      status: 200,
      peer: "127.0.0.1",
      rpc: "relay.v1.RelayService/Get",
    });
    const detail = await (await fetch(`${gateway.origin}/v1/items/a?how=detail`)).json();
    expect(detail).toMatchObject({ details: [{ "@type": "type.googleapis.com/relay.v1.Item", name: "detail" }] });
    const session = connectHttp2(gateway.origin);
    const stream = session.request({ ":path": "/v1/items/h2" });
    const [head] = (await once(stream, "response")) as [Record<string, unknown>];
    session.destroy();
    expect(head[":status"]).toBe(200);
    expect((await fetch(`${gateway.origin}/healthz`)).status).toBe(200);
    expect((await fetch(`${gateway.origin}/readyz`)).status).toBe(200);
    setHealth(false);
    expect((await fetch(`${gateway.origin}/readyz`)).status).toBe(503);
    setHealth(true);
  });

  test("logs what each request was and how it ended, without its query", async () => {
    const gateway = await runGateway(...upstream(), "--descriptors", set);
    await fetch(`${gateway.origin}/v1/items/failed?how=detail&secret=s`);
    await cut(gateway, "/v1/items/cut?how=hang");
    await fetch(`${gateway.origin}/nothing?secret=s`, { method: "PUT" });
    const common = { time: expect.any(String), event: "request", peer: "127.0.0.1", durationMs: expect.any(Number) };
    const rpc = "relay.v1.RelayService/Get";
    const failed = await gateway.line(({ path }) => path === "/v1/items/failed");
    expect(failed).toEqual({
      ...common,
      ...{ method: "GET", path: "/v1/items/failed", status: 429, rpc, code: "ResourceExhausted" },
    });
    expect(failed.durationMs).toBeGreaterThan(0);
    expect(await gateway.line(({ path }) => path === "/v1/items/cut")).toMatchObject({ status: 0, cut: true });
    expect(await gateway.line(({ method }) => method === "PUT")).toEqual({
      ...common,
      ...{ method: "PUT", path: "/nothing", status: 404, code: "NotFound" },
    });
  });

  test("logs of errors alone what ends with a status from 500, or is cut", async () => {
    const gateway = await runGateway(...upstream(), "--descriptors", set, "--log", "errors");
    for (const path of ["/v1/items/a", "/nothing", "/v1/items/a?how=detail"]) await fetch(gateway.origin + path);
    await cut(gateway, "/v1/counts/a?number=1&how=hang");
    const late = { headers: { "x-server-timeout": "0.01" } };
    expect((await fetch(`${gateway.origin}/v1/items/a?how=hang`, late)).status).toBe(504);
    await gateway.line(({ status }) => status === 504);
    await gateway.line((line) => line.cut === true);
    expect(gateway.log.filter(({ event }) => event === "request")).toHaveLength(2);
  });

  test("reports that the reflection of the server is incomplete, as that of @grpc/reflection", async () => {
    await using stock = await startGrpcServer();
    const args = ["--upstream", `http://127.0.0.1:${stock.port}`, "--reflection", "--auto-routes"];
    const child = spawn(process.execPath, [MAIN, ...args]);
    const [text] = (await once(child.stderr, "data")) as [Buffer];
    expect(text.toString()).toContain("incomplete: use --descriptors");
    expect(await once(child, "close")).toEqual([1, null]);
  });

  test("reads rules from a service config, and again on SIGHUP; a broken one changes nothing", async () => {
    const config = join(directory, "service.yaml");
    const ruleFor = (path: string) =>
      `type: google.api.Service\nhttp:\n  rules:\n  - selector: relay.v1.RelayService.Get\n    get: ${path}\n`;
    writeFileSync(config, ruleFor('"/v2/{name}"'));
    const descriptors = join(directory, "copy.binpb");
    copyFileSync(set, descriptors);
    const gateway = await runGateway(...upstream(), "--descriptors", descriptors, "--service-config", config);
    const status = async (path: string) => (await fetch(gateway.origin + path)).status;
    expect([await status("/v2/a"), await status("/v1/items/a")]).toEqual([200, 404]);
    writeFileSync(config, ruleFor('"/v3/{name}"'));
    gateway.process.kill("SIGHUP");
    await gateway.line(({ event }) => event === "reloaded");
    expect([await status("/v3/a"), await status("/v2/a")]).toEqual([200, 404]);
    writeFileSync(descriptors, "not descriptors");
    gateway.process.kill("SIGHUP");
    const failed = await gateway.line(({ event }) => event === "reload failed");
    expect(failed.reason).toContain("not a complete FileDescriptorSet");
    expect(await status("/v3/a")).toBe(200);
  });

  test("serves the routes of changed files, without a signal; broken ones change nothing", async () => {
    const descriptors = join(directory, "followed.binpb");
    writeFileSync(descriptors, readFileSync(set));
    const gateway = await runGateway(...upstream(), "--descriptors", descriptors);
    const file = fromBinary(FileDescriptorSetSchema, readFileSync(set));
    for (const { service } of file.file) service.splice(0, Number.POSITIVE_INFINITY);
    writeFileSync(descriptors, toBinary(FileDescriptorSetSchema, file));
    const failed = await gateway.line(({ event }) => event === "reload failed");
    expect(failed.reason).toContain("no google.api.http rules");
    expect((await fetch(`${gateway.origin}/v1/items/a`)).status).toBe(200);
    writeFileSync(descriptors, readFileSync(set));
    await gateway.line(({ event }) => event === "reloaded");
    expect((await fetch(`${gateway.origin}/v1/items/a`)).status).toBe(200);
  });

  test("reads requests as its options say: enums in any case, forms, other methods, all escapes", async () => {
    const post = (headers: Record<string, string>, body: string) => ({ method: "POST", headers, body });
    const form = post({ "content-type": "application/x-www-form-urlencoded" }, "name=a+b&size=size_large");
    const override = { method: "POST", headers: { "x-http-method-override": "GET" } };
    const responses = async ({ origin }: Running) => [
      await fetch(`${origin}/v1/items`, form),
      await fetch(`${origin}/v1/items/a?size=size_large`),
      await fetch(`${origin}/v1/items`, post({ "content-type": "application/json" }, '{"size":"Size_Large"}')),
      await fetch(`${origin}/v1/items/a%2Fb`, override),
    ];
    const flags = ["--case-insensitive-enums", "--form-posts", "--method-override", "--unescape-all"];
    const served = await responses(await runGateway(...upstream(), "--descriptors", set, ...flags));
    expect(await Promise.all(served.map((response) => response.json()))).toEqual([
      { name: "a b", size: "SIZE_LARGE" },
      { name: "a", size: "SIZE_LARGE" },
      { size: "SIZE_LARGE" },
      { name: "a/b" },
    ]);
    const refused = await responses(await runGateway(...upstream(), "--descriptors", set));
    // The gateway ignores an unknown enum value in JSON, as it ignores unknown fields.
    expect(refused.map(({ status }) => status)).toEqual([415, 400, 200, 405]);
    expect(await refused[2]?.json()).toEqual({});
  });

  test("reads and writes as clients of grpc-gateway know it, if it is asked to", async () => {
    const flags = ["--unset-fields", "--proto-names", "--enum-numbers", "--int64-numbers"];
    const forms = ["--stream-results", "--grpc-metadata", "--any-update-mask", "--form-posts"];
    const { origin } = await runGateway(...upstream(), "--descriptors", set, ...flags, ...forms);
    const headers = { "grpc-metadata-x-sent": "s", "grpc-metadata-x-forwarded-for": "192.0.2.1" };
    const response = await fetch(`${origin}/v1/items/a?how=headers&size=SIZE_LARGE&number=7`, { headers });
    expect(await response.json()).toEqual({ name: "a", number: 7, how: "headers", tags: [], size: 1 });
    const names = ["grpc-metadata-x-reply", "grpc-metadata-set-cookie", "grpc-trailer-x-trailer", "x-reply"];
    expect(names.map((name) => response.headers.get(name))).toEqual(["early", "a=1", "late", null]);
    expect(lastMetadata().get("x-sent")).toEqual(["s"]);
    expect(lastMetadata().get("x-forwarded-for")).toEqual(["127.0.0.1"]);
    const stream = await (await fetch(`${origin}/v1/counts/a?number=1&how=fail`)).text();
    expect(
      stream
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line)),
    ).toEqual([
      { result: { name: "a", number: 1, how: "", tags: [], size: 0 } },
      { error: { code: 9, message: "as asked", details: [] } },
    ]);
    const total = await fetch(`${origin}/v1/sums/a`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: "{}",
    });
    expect(await total.json()).toHaveProperty("content_type", "");
  });

  test("accepts and sends protobuf, messages and streams, if it is asked to", async () => {
    const { origin } = await runGateway(...upstream(), "--descriptors", set, "--protobuf");
    const headers = { accept: "application/x-protobuf" };
    const body = new Uint8Array(toBinary(ItemSchema, create(ItemSchema, { name: "a", number: 7n })));
    const sent = { method: "POST", headers: { "content-type": "application/x-protobuf" }, body };
    const unary = new Uint8Array(await (await fetch(`${origin}/v1/items`, sent)).arrayBuffer());
    expect(fromBinary(ItemSchema, unary)).toMatchObject({ name: "a", number: 7n });
    const stream = await fetch(`${origin}/v1/counts/a?number=2`, { headers });
    const numbers: bigint[] = [];
    const pieces = stream.body as ReadableStream<Uint8Array>;
    for await (const { number } of sizeDelimitedDecodeStream(ItemSchema, pieces)) numbers.push(number);
    expect(numbers).toEqual([1n, 2n]);
    const failed = await fetch(`${origin}/v1/items/a?how=detail`, { headers });
    const status = fromBinary(StatusSchema, new Uint8Array(await failed.arrayBuffer()));
    expect([failed.status, status.code, status.details.length]).toEqual([429, 8, 1]);
  });

  test("is alive but not ready while the server is away, and serves it when it is there", async () => {
    const own = await startGrpcServer();
    own.die();
    const gateway = await runGateway("--upstream", `http://127.0.0.1:${own.port}`, "--descriptors", set);
    expect((await fetch(`${gateway.origin}/healthz`)).status).toBe(200);
    expect((await fetch(`${gateway.origin}/readyz`)).status).toBe(503);
    expect((await fetch(`${gateway.origin}/v1/items/a`)).status).toBe(503);
    await gateway.line(({ event }) => event === "upstream error");
    await using _back = await startGrpcServer(own.port);
    await until(async () => expect((await fetch(`${gateway.origin}/readyz`)).status).toBe(200));
    expect((await fetch(`${gateway.origin}/v1/items/a`)).status).toBe(200);
  });

  test("finishes open requests on SIGTERM, and ends", async () => {
    const gateway = await runGateway(...upstream(), "--descriptors", set, "--auto-routes");
    const ofStream = await fetch(`${gateway.origin}/v1/counts/a?number=1&how=hang`, {
      headers: { "x-server-timeout": "1" },
    });
    gateway.process.kill("SIGTERM");
    const [code] = (await once(gateway.process, "exit")) as [number];
    expect(code).toBe(0);
    expect(await ofStream.text()).toContain('"code":4');
  });

  test.each([
    [[], 0, ""],
    [["--upstream", "x"], 1, "give either --descriptors or --reflection"],
    [["--upstream", "x", "--reflection"], 1, '"x" is not an http(s) URL'],
    [["--upstream", "http://127.0.0.1:1", "--descriptors", "/nowhere"], 1, "no such file"],
    [["--upstream", "http://127.0.0.1:1", "--reflection"], 1, "unavailable"],
    [["--upstream", "http://x", "--descriptors", set, "--timeout-ms", "soon"], 1, "not an integer"],
    [["--upstream", "http://x", "--descriptors", set, "--timeout-ms", "2147483648"], 1, "to 2147483647"],
    [["--upstream", "http://x", "--descriptors", set, "--protocol", "soap"], 1, "none of grpc"],
    [["--upstream", "http://x", "--descriptors", set, "--tls-key", "x"], 1, "belong together"],
    [["--upstream", "http://x", "--descriptors", set, "--upstream-http", "1.1"], 1, "gRPC needs HTTP/2"],
    [["--upstream", "http://x", "--reflection", "--upstream-http", "1.1"], 1, "reflection needs HTTP/2"],
    [["--unknown"], 1, "--unknown"],
  ])("reports wrong arguments: %j", async (args, code, text) => {
    const child = spawn(process.execPath, [MAIN, ...args]);
    let stderr = "";
    child.stderr.on("data", (piece: Buffer) => {
      stderr += piece.toString();
    });
    const [exit] = (await once(child, "close")) as [number];
    expect(exit).toBe(code);
    expect(stderr).toContain(text);
  });
});
