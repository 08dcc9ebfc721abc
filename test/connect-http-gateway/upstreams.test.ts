/** The gateway in front of gRPC, gRPC-Web and Connect servers, with TLS and without, over HTTP/1.1 and HTTP/2. */
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { connect, createServer as createHttp2Server, createSecureServer } from "node:http2";
import { createServer as createHttpsServer } from "node:https";
import type { AddressInfo, Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Code } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import { parseArguments, startGateway } from "../../src/connect-http-gateway/index.ts";
import { startGrpcServer } from "../connect-http-routes/support/grpc-server.ts";
import { relayRoutes } from "../connect-http-routes/support/relay-service.ts";
import { selfSigned, serverAuthority } from "../support/certificate.ts";
import { until } from "../support/until.ts";

const directory = mkdtempSync(join(tmpdir(), "upstreams-"));
afterAll(() => rmSync(directory, { recursive: true }));
const set = join(directory, "set.binpb");
execFileSync("node_modules/.bin/buf", [
  "build",
  "test/connect-http-routes/proto",
  "--path",
  "test/connect-http-routes/proto/relay",
  "-o",
  set,
]);
const { authority, server: pem } = serverAuthority(["localhost"]);
const ca = join(directory, "ca.pem");
writeFileSync(ca, authority);

/** A running server. */
interface Backend extends AsyncDisposable {
  readonly origin: string;
  /** Returns how long the last call may take, in milliseconds; the server may have rounded it. */
  timeoutMs(): number | undefined;
  /** Resolves when the next call has ended. */
  ended(): Promise<unknown>;
}

async function startGrpc(tls: boolean): Promise<Backend> {
  const server = await startGrpcServer(0, undefined, tls ? pem : undefined);
  return {
    origin: `http${tls ? "s" : ""}://127.0.0.1:${server.port}`,
    timeoutMs: () => server.deadlineMs() - Date.now(),
    ended: () => server.cancelled(),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

/** Starts a server of connect-node, which speaks gRPC-Web and Connect. */
async function startConnect(tls: boolean, version: "1.1" | "2"): Promise<Backend> {
  let end = Promise.withResolvers<unknown>();
  let timeoutMs: number | undefined;
  const routes = relayRoutes({
    received: (_, context) => {
      timeoutMs = context.timeoutMs();
    },
    ended: ({ reason }) => end.resolve(reason),
  });
  const adapter = connectNodeAdapter({ routes });
  let server: Server;
  if (version === "2") server = tls ? createSecureServer({ ...pem }, adapter) : createHttp2Server(adapter);
  else server = tls ? createHttpsServer({ ...pem }, adapter) : createServer(adapter);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const sockets = new Set<{ destroy(): void }>();
  server.on("connection", (socket) => sockets.add(socket));
  return {
    origin: `http${tls ? "s" : ""}://127.0.0.1:${(server.address() as AddressInfo).port}`,
    timeoutMs: () => timeoutMs,
    ended() {
      end = Promise.withResolvers();
      return end.promise;
    },
    async [Symbol.asyncDispose]() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

type Line = Readonly<Record<string, unknown>>;

async function startFront(origin: string, ...args: string[]): Promise<{ origin: string; log: readonly Line[] }> {
  const log: Line[] = [];
  const all = ["--upstream", origin, "--descriptors", set, "--listen", "127.0.0.1:0", ...args];
  const gateway = await startGateway(parseArguments(all), (line) => log.push(line));
  onTestFinished(() => gateway.close());
  return { origin: `http://127.0.0.1:${gateway.port}`, log };
}

const linesOf = (text: string) =>
  text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Line);

const UPSTREAMS: readonly [name: string, start: () => Promise<Backend>, args: string[]][] = [
  ["gRPC", () => startGrpc(false), []],
  ["gRPC over TLS", () => startGrpc(true), ["--upstream-ca", ca]],
  ["gRPC-Web", () => startConnect(false, "2"), ["--protocol", "grpc-web"]],
  ["gRPC-Web over TLS", () => startConnect(true, "2"), ["--protocol", "grpc-web", "--upstream-ca", ca]],
  ["gRPC-Web over HTTP/1.1", () => startConnect(false, "1.1"), ["--protocol", "grpc-web", "--upstream-http", "1.1"]],
  ["Connect", () => startConnect(false, "2"), ["--protocol", "connect"]],
  ["Connect over TLS", () => startConnect(true, "2"), ["--protocol", "connect", "--upstream-ca", ca]],
  [
    "Connect over TLS and HTTP/1.1",
    () => startConnect(true, "1.1"),
    ["--protocol", "connect", "--upstream-http", "1.1", "--upstream-ca", ca],
  ],
];

describe.each(UPSTREAMS)("an upstream that speaks %s", (_, start, args) => {
  test("serves messages, streams and errors with details, is ready, and is given deadlines", async () => {
    await using backend = await start();
    const { origin, log } = await startFront(backend.origin, ...args);
    const unary = await fetch(`${origin}/v1/items/a/b?number=9007199254740993`);
    expect([unary.status, await unary.json()]).toEqual([200, { name: "a/b", number: "9007199254740993" }]);

    const stream = await (await fetch(`${origin}/v1/counts/a?number=2`)).text();
    expect(linesOf(stream)).toEqual([1, 2].map((number) => ({ name: "a", number: `${number}` })));
    const lines = { "content-type": "application/x-ndjson" };
    const body = '{"number":1}\n{"number":2}\n';
    const sum = await fetch(`${origin}/v1/sums/a`, { method: "POST", headers: lines, body });
    expect(await sum.json()).toMatchObject({ sum: "3", messages: 2 });

    const detail = {
      code: Code.ResourceExhausted,
      details: [{ "@type": "type.googleapis.com/relay.v1.Item", name: "detail" }],
    };
    const failed = await fetch(`${origin}/v1/items/a?how=detail`);
    expect([failed.status, await failed.json()]).toMatchObject([429, detail]);
    const within = linesOf(await (await fetch(`${origin}/v1/counts/a?number=1&how=detail`)).text());
    expect(within).toMatchObject([{ number: "1" }, { error: detail }]);

    const ended = backend.ended();
    const late = await fetch(`${origin}/v1/items/a?how=hang`, { headers: { "x-server-timeout": "0.5" } });
    expect([late.status, await late.json()]).toMatchObject([504, { code: Code.DeadlineExceeded }]);
    expect(backend.timeoutMs()).toBeLessThanOrEqual(500);
    await ended;

    expect((await fetch(`${origin}/readyz`)).status).toBe(200);
    expect(log.filter(({ event }) => event === "upstream error")).toEqual([]);
  });
});

test.each(UPSTREAMS)(
  "a response of an upstream that speaks %s is bounded by --max-body-bytes",
  async (_, start, args) => {
    await using backend = await start();
    const { origin } = await startFront(backend.origin, ...args, "--max-body-bytes", "1000");
    // The path contains the name of an item, which the RPC returns, so a long path makes a large response.
    const statusOf = async (path: string) => (await fetch(origin + path)).status;
    const [fitting, large] = ["a".repeat(900), "a".repeat(2_000)];
    expect([await statusOf(`/v1/items/${fitting}`), await statusOf(`/v1/items/${large}`)]).toEqual([200, 429]);
    const stream = await (await fetch(`${origin}/v1/counts/${large}?number=1`)).text();
    // If the upstream's headers arrive before its message, the gateway has already begun its response. It then sends the error as a line of
    // the stream.
    const { error, ...alone } = JSON.parse(stream);
    expect(error ?? alone).toMatchObject({ code: Code.ResourceExhausted });
  },
);

test.each(UPSTREAMS.filter(([name]) => !name.includes("HTTP/1.1")))(
  "an upstream that speaks %s streams both ways",
  async (_, start, args) => {
    await using backend = await start();
    const { origin } = await startFront(backend.origin, ...args);
    const session = connect(origin);
    const call = session.request({ ":method": "POST", ":path": "/v1/chats/a", "content-type": "application/x-ndjson" });
    for (const number of [1, 2]) {
      call.write(`{"number":${number}}\n`);
      const [data] = (await once(call, "data")) as [Buffer];
      expect(JSON.parse(data.toString())).toEqual({ name: "a", number: String(number * 2) });
    }
    call.end();
    await once(call, "end");
    session.destroy();
  },
);

test.each([
  [[], 3_600_001],
  [["--max-timeout-ms", "1000"], 1_001],
])("a deadline that is longer than the gateway allows is refused: %j", async (args, timeoutMs) => {
  await using backend = await startGrpc(false);
  const { origin } = await startFront(backend.origin, ...args);
  const statusFor = async (ms: number) =>
    (await fetch(`${origin}/v1/items/a`, { headers: { "connect-timeout-ms": String(ms) } })).status;
  // The gateway refuses the first timeout (400), and accepts the second, which is 1 ms shorter and may expire (504) on a busy machine.
  expect([await statusFor(timeoutMs), await statusFor(timeoutMs - 1)]).toEqual([400, expect.toBeOneOf([200, 504])]);
});

test("several upstreams: calls go on while one of them is away, and the log says which", async () => {
  const [here, away] = [await startGrpc(false), await startGrpc(false)];
  await away[Symbol.asyncDispose]();
  await using _ = here;
  const { origin, log } = await startFront(away.origin, "--upstream", here.origin);
  for (let i = 0; i < 5; i++) expect((await fetch(`${origin}/v1/items/a`)).status).toBe(200);
  expect((await fetch(`${origin}/readyz`)).status).toBe(200);
  expect(log.find(({ event }) => event === "listening")?.upstream).toBe(`${away.origin} ${here.origin}`);
  expect(log.find(({ event }) => event === "upstream error")).toMatchObject({
    upstream: away.origin,
    reason: expect.stringContaining("ECONNREFUSED"),
  });
});

test("an upstream all of whose streams are taken is not ready, until one ends", async () => {
  const server = createHttp2Server({ settings: { maxConcurrentStreams: 1 } });
  let taken = 0;
  // The server of this test never responds, so calls last until they are cancelled.
  server.on("stream", (stream) => {
    taken++;
    stream.on("error", () => {});
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const upstream = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const { origin } = await startFront(upstream, "--upstream-connections", "1");
  const call = new AbortController();
  const waiting = fetch(`${origin}/v1/items/a`, { signal: call.signal });
  await until(async () => expect(taken).toBe(1));
  // The call may arrive before the gateway knows the server's limit of streams, so readiness is polled.
  const readiness = async () => {
    const response = await fetch(`${origin}/readyz`);
    return `${response.status} ${await response.text()}`;
  };
  await until(async () => expect(await readiness()).toMatch(/^503 .*no free stream/));
  call.abort();
  await expect(waiting).rejects.toThrow();
  // A stream is free again, so the gateway now sends a health check to the upstream. The server of this test does not respond to it.
  await until(async () => expect(await readiness()).toMatch(/^503 .*timed out/));
});

describe("an upstream whose certificate is not trusted", () => {
  test.each<[name: string, args: string[], start: () => Promise<Backend>, reason: RegExp]>([
    ["without --upstream-ca, gRPC", [], () => startGrpc(true), /unable to verify the first certificate/],
    ["of another authority, gRPC", ["--upstream-ca", "other"], () => startGrpc(true), /unable to verify|certificate/],
    [
      "without --upstream-ca, Connect",
      ["--protocol", "connect"],
      () => startConnect(true, "2"),
      /unable to verify the first certificate/,
    ],
    [
      "without --upstream-ca, gRPC-Web over HTTP/1.1",
      ["--protocol", "grpc-web", "--upstream-http", "1.1"],
      () => startConnect(true, "1.1"),
      /unable to verify the first certificate/,
    ],
  ])("is 503, and the log says why: %s", async (_, args, start, reason) => {
    await using backend = await start();
    const other = join(directory, "other.pem");
    writeFileSync(other, selfSigned().cert);
    const { origin, log } = await startFront(backend.origin, ...args.map((arg) => (arg === "other" ? other : arg)));
    const response = await fetch(`${origin}/v1/items/a`);
    expect([response.status, await response.json()]).toMatchObject([503, { message: "the upstream is unavailable" }]);
    expect(log.find(({ event }) => event === "upstream error")?.reason).toMatch(reason);
    expect((await fetch(`${origin}/readyz`)).status).toBe(503);
  });

  test("is 503 for another name than that of the certificate", async () => {
    const { authority: own, server } = serverAuthority([]);
    const file = join(directory, "own.pem");
    writeFileSync(file, own);
    await using backend = await startGrpcServer(0, undefined, server);
    const { origin, log } = await startFront(`https://localhost:${backend.port}`, "--upstream-ca", file);
    expect((await fetch(`${origin}/v1/items/a`)).status).toBe(503);
    expect(log.find(({ event }) => event === "upstream error")?.reason).toMatch(/localhost.*does not match|altnames/i);
  });

  test("keeps the gateway from starting if the authorities cannot be read", async () => {
    await expect(startFront("https://127.0.0.1:1", "--upstream-ca", "/nowhere.pem")).rejects.toThrow("no such file");
  });
});
