/** The gateway enforces all limits of `src/platform/listener` (such as connections for each address) and of the HTTP layer (such as body sizes). */
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect as connectHttp2 } from "node:http2";
import { connect, type Socket } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { MAX_CONTROL_FRAMES, MAX_HEAD_BYTES } from "../../src/platform/listener/limits.ts";
import { servesAfterCancelling } from "../support/cancelled-streams.ts";
import { slowness } from "../support/slowness.ts";
import { until } from "../support/until.ts";
import { type Running, runGatewayWith, startRelay } from "./running.ts";

const { set, upstream } = startRelay();

const startWith = (env: Readonly<Record<string, string>>, ...args: string[]) =>
  runGatewayWith(env, ...upstream(), "--descriptors", set, ...args);
const start = (...args: string[]) => startWith({}, ...args);

function dial({ origin }: Running): Socket {
  const socket = connect(Number(new URL(origin).port), "127.0.0.1");
  onTestFinished(() => void socket.destroy());
  return socket.on("error", () => {});
}

/** Returns everything that a connection receives until it closes. */
async function received(socket: Socket): Promise<string> {
  const chunks: Buffer[] = [];
  socket.on("data", (chunk: Buffer) => chunks.push(chunk));
  // The function once() is not used, because it rejects if the connection is reset.
  await new Promise((resolve) => socket.once("close", resolve));
  return Buffer.concat(chunks).toString();
}

test("requests that name two hosts are refused, on probes too", async () => {
  const gateway = await start();
  for (const [target, hosts] of [
    ["/v1/items/a", "Host: a\r\nHost: b"],
    ["/healthz", "Host: a\r\nHost: b"],
    ["http://b/v1/items/a", "Host: a"],
    ["http://b/healthz", "Host: a"],
  ]) {
    const socket = dial(gateway);
    socket.write(`GET ${target} HTTP/1.1\r\n${hosts}\r\nConnection: close\r\n\r\n`);
    const response = await received(socket);
    expect(response).toMatch(/^HTTP\/1\.1 400 /);
    expect(JSON.parse(response.split("\r\n\r\n")[1] ?? "")).toMatchObject({ code: 3 });
  }
  const session = connectHttp2(gateway.origin);
  const stream = session.request({ ":path": "/v1/items/a", ":authority": "a", host: "b" });
  const [head] = (await once(stream, "response")) as [Record<string, unknown>];
  session.destroy();
  expect(head[":status"]).toBe(400);
});

test("a head that is too large is refused, with the reason", async () => {
  const socket = dial(await start());
  socket.write(`GET / HTTP/1.1\r\nHost: a\r\nCookie: ${"x".repeat(MAX_HEAD_BYTES)}\r\n\r\n`);
  expect(await received(socket)).toMatch(/^HTTP\/1\.1 431 [\s\S]*Cookies are the usual cause/);
});

test("connections over the limit are refused, and logged", async () => {
  const gateway = await start("--max-connections", "4");
  const sockets = [1, 2, 3].map(() => dial(gateway));
  for (const socket of sockets) {
    socket.write("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n");
    await once(socket, "data");
  }
  await received(dial(gateway));
  expect(await gateway.line(({ event }) => event === "connection refused")).toMatchObject({ reason: "address" });
  for (const socket of sockets) expect(socket.closed).toBe(false);
});

test("a flood of control frames ends its connection", async () => {
  const gateway = await start();
  const session = connectHttp2(gateway.origin, { maxOutstandingPings: 2 * MAX_CONTROL_FRAMES });
  await once(session, "connect");
  session.on("error", () => {});
  const closed = new Promise((resolve) => session.once("close", resolve));
  for (let i = 0; i <= MAX_CONTROL_FRAMES + 10; i++) session.ping(() => {});
  await closed;
  expect((await fetch(`${gateway.origin}/healthz`)).status).toBe(200);
});

test("behind a proxy, clients that disconnect do not end the connection that they share with others", async () => {
  const gateway = await start("--trust-proxy", "127.0.0.1");
  expect(await servesAfterCancelling(gateway.origin, "GET", "/v1/items/a")).toBe(true);
});

const MIB = 1024 * 1024;
const BODIES = 150;

/** Returns the peak memory of a process, in MiB. */
function peakMib({ process: { pid } }: Running): number {
  return Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024;
}

test("150 unfinished bodies of 4 MiB take little more than bodies may take, and each is closed in time", async () => {
  // On a slow machine, too, more bodies than may be pending have arrived before the first of them is late.
  const gateway = await start("--body-timeout-ms", `${Math.ceil(4_000 * slowness())}`);
  expect((await fetch(`${gateway.origin}/v1/items`, { method: "POST", body: new Uint8Array(100) })).status).toBe(400);
  const before = peakMib(gateway);
  const part = Buffer.alloc(4 * MIB - 1, "x");
  const responses = Array.from({ length: BODIES }, async () => {
    const socket = dial(gateway);
    socket.write(`POST /v1/items HTTP/1.1\r\nHost: a\r\nContent-Length: ${4 * MIB}\r\n\r\n`);
    socket.write(part);
    return (await received(socket)).slice(9, 12);
  });
  const statuses = await Promise.all(responses);
  // The status is empty if TCP lost the response, which can happen while a client is still sending. The log has all.
  expect(statuses.filter((status) => !["503", "408", ""].includes(status))).toEqual([]);
  await until(() => {
    const logged = gateway.log.filter(({ event, status }) => event === "request" && status !== 400);
    expect(logged).toHaveLength(BODIES);
    expect(new Set(logged.map(({ status }) => status))).toEqual(new Set([503, 408]));
  });
  expect(peakMib(gateway) - before).toBeLessThan(400);
  const response = await fetch(`${gateway.origin}/v1/items`, { method: "POST", body: '{"name":"a"}' });
  expect(response.status).toBe(415);
});

test("in a container with little memory it takes four connections, and one body of the largest size", async () => {
  const container = "data:text/javascript,process.constrainedMemory=()=>2**26";
  const gateway = await startWith({ NODE_OPTIONS: `--import="${container}"` });
  const sockets = [1, 2].map(() => dial(gateway));
  for (const socket of sockets) {
    socket.write(`POST /v1/items HTTP/1.1\r\nHost: a\r\nContent-Length: ${4 * MIB}\r\n\r\n`);
    socket.write(Buffer.alloc(3 * MIB, "x"));
  }
  expect(await gateway.line(({ event }) => event === "request")).toMatchObject({ path: "/v1/items", status: 503 });
  for (let i = 0; i < 4; i++) dial(gateway);
  expect(await gateway.line(({ event }) => event === "connection refused")).toMatchObject({ reason: "address" });
});
