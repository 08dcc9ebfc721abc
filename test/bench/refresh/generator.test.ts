import { createServer, type RequestListener } from "node:http";
import { createServer as createHttp2Server, type ServerHttp2Session } from "node:http2";
import type { AddressInfo } from "node:net";
import { afterEach, expect, onTestFinished, test } from "vitest";
import { slowness } from "../../support/slowness.ts";
import type { Plan } from "./plan.ts";
import { type Generator, startGenerator } from "./processes.ts";
import { refreshGrpc, refreshJson } from "./requests.ts";

const stops: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

function generate(): Generator {
  const generator = startGenerator();
  stops.push(generator.stop);
  return generator;
}

async function serve(listener: RequestListener): Promise<number> {
  const server = createServer(listener).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

const plan = (port: number, use: Plan["use"], credentials: readonly string[]): Plan => ({
  name: "test",
  port,
  ...refreshJson(port),
  use,
  credentials,
});

const total = (responses: Readonly<Record<string, number>>) => Object.values(responses).reduce((sum, n) => sum + n, 0);

test("each connection presents what its last response has set, from slice to slice", async () => {
  const seen = new Set<string>();
  let twice = 0;
  const port = await serve((request, response) => {
    const [, client, count] = /refresh_token=(\d+)-(\d+)/.exec(request.headers.cookie ?? "") ?? [];
    if (seen.has(`${client}-${count}`)) twice++;
    seen.add(`${client}-${count}`);
    response.setHeader("set-cookie", `refresh_token=${client}-${Number(count) + 1}; Path=/v1/auth`).end("{}");
  });
  const generator = generate();
  await generator.load(
    plan(
      port,
      "adopt",
      Array.from({ length: 32 }, (_, client) => `${client}-0`),
    ),
  );
  const first = await generator.run({ name: "test", seconds: slowness() });
  const second = await generator.run({ name: "test", seconds: slowness() });
  expect(seen.size).toBe(total(first.responses) + total(second.responses));
  expect(seen.size).toBeGreaterThan(64);
  expect(twice).toBe(0);
});

test("each credential is spent once, and every status is counted", async () => {
  let requests = 0;
  const port = await serve((_request, response) => {
    // The response has no content length, so its body is sent in chunks.
    response.statusCode = ++requests % 10 === 0 ? 503 : 200;
    response.write("{");
    response.end("}");
  });
  const generator = generate();
  await generator.load(
    plan(
      port,
      "spend",
      Array.from({ length: 100 }, (_, n) => `token-${n}`),
    ),
  );
  const { responses } = await generator.run({ name: "test", seconds: 5 });
  expect(responses).toEqual({ "200": 90, "503": 10 });
});

test("a connection that breaks is reported as lost", async () => {
  let requests = 0;
  const port = await serve((request, response) => {
    if (++requests === 50) request.socket.destroy();
    else response.end("{}");
  });
  const generator = generate();
  await generator.load(
    plan(
      port,
      "repeat",
      Array.from({ length: 32 }, () => "token"),
    ),
  );
  const { responses } = await generator.run({ name: "test", seconds: slowness() });
  expect(responses.lost).toBe(1);
});

test("at an offered rate no more requests leave than were offered", async () => {
  const port = await serve((_request, response) => response.end("{}"));
  const generator = generate();
  await generator.load(
    plan(
      port,
      "repeat",
      Array.from({ length: 32 }, () => "token"),
    ),
  );
  const { responses } = await generator.run({ name: "test", seconds: 0.5, rate: 200 });
  expect(total(responses)).toBeGreaterThan(0);
  expect(total(responses)).toBeLessThanOrEqual(101);
});

test("a client of gRPC presents what its last response has set, and sees the status in the trailers", async () => {
  const sessions = new Set<ServerHttp2Session>();
  const server = createHttp2Server((request, response) => {
    const [, client, count] = /refresh_token=(\d+)-(\d+)/.exec(request.headers.cookie ?? "") ?? [];
    request.resume();
    response.setHeader("set-cookie", `refresh_token=${client}-${Number(count) + 1}; Path=/v1/auth`);
    response.addTrailers({ "grpc-status": count === "1" ? "16" : "0" });
    response.end(Buffer.alloc(5));
  });
  server.on("session", (session) => sessions.add(session));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    for (const session of sessions) session.destroy();
    server.close();
  });
  const credentials = Array.from({ length: 32 }, (_, client) => `${client}-0`);
  const generator = generate();
  const { port } = server.address() as AddressInfo;
  await generator.load({ ...plan(port, "adopt", credentials), ...refreshGrpc(), isGrpc: true });
  const { responses } = await generator.run({ name: "test", seconds: slowness() });
  expect(responses["gRPC 16"]).toBeGreaterThan(0);
  expect(Object.keys(responses).toSorted()).toEqual(["200", "gRPC 16"]);
});
