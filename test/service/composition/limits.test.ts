/** Limits on what one client may use of the service. They protect the service for other clients. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect as connectHttp2, type OutgoingHttpHeaders } from "node:http2";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, expect, test } from "vitest";
import {
  MAX_UNAUTHENTICATED,
  UNAUTHENTICATED_PER_SECOND,
} from "../../../src/platform/listener/unauthenticated-requests.ts";
import { listenerLimits } from "../../../src/service/composition/listener-limits.ts";
import { startIssuer } from "../../support/logout-token.ts";
import { compiled, PROGRAM } from "../../support/program.ts";
import { request } from "../../support/raw-http.ts";
import { type Service, scratch, startService } from "../../support/service.ts";
import { bearer, cookie, logIn } from "../../support/sessions.ts";
import { until } from "../../support/until.ts";

const sockets: Socket[] = [];
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
});

/** Opens a connection from an address of the loopback network. Collects what it receives until it is closed. */
function dial(url: string, localAddress = "127.0.0.1"): { socket: Socket; closed: Promise<string> } {
  const { hostname, port } = new URL(url);
  const socket = connect({ port: Number(port), host: hostname, localAddress });
  sockets.push(socket);
  let heard = "";
  socket
    .on("error", () => {})
    .on("data", (chunk) => {
      heard += chunk.toString("latin1");
    });
  return { socket, closed: new Promise((resolve) => void socket.once("close", () => resolve(heard))) };
}

async function statusFrom(url: string, localAddress: string): Promise<string> {
  const { socket, closed } = dial(url, localAddress);
  socket.write("GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  return (await closed).slice(9, 12);
}

test("an address that has its share is refused, and others are served", async () => {
  const service = await startService({ MAX_CONNECTIONS: "16", MAX_CONNECTIONS_PER_ADDRESS: "3" });
  const held = Array.from({ length: 3 }, () => dial(service.publicUrl));
  await Promise.all(held.map(({ socket }) => once(socket, "connect")));
  expect(await statusFrom(service.publicUrl, "127.0.0.1")).toBe("");
  expect(await statusFrom(service.publicUrl, "127.0.0.2")).toBe("200");
  expect(await statusFrom(service.adminUrl, "127.0.0.1")).toBe("200");
  held[0]?.socket.destroy();
  await held[0]?.closed;
  await until(async () => expect(await statusFrom(service.publicUrl, "127.0.0.1")).toBe("200"));
  const metrics = await request(service.adminUrl, { path: "/metrics", headers: bearer(service.adminToken) });
  expect(metrics.body).toMatch(/^session_connections_refused_total{listener="public",reason="address"} [1-9]/m);
  await service.stop();
});

test("a full listener makes place for those who hold little of it", async () => {
  const service = await startService({ MAX_CONNECTIONS: "16", MAX_CONNECTIONS_PER_ADDRESS: "16" });
  const held = Array.from({ length: 16 }, () => dial(service.publicUrl));
  await Promise.all(held.map(({ socket }) => once(socket, "connect")));
  expect(await statusFrom(service.publicUrl, "127.0.0.1")).toBe("");
  expect(await statusFrom(service.publicUrl, "127.0.0.2")).toBe("200");
  await held[0]?.closed; // The oldest connection was closed to make room.
  await service.stop();
});

test("requests that never come whole take neither listener down where few files may be open", async () => {
  const child = spawn("sh", ["-c", 'ulimit -n 160; exec "$0" "$1"', process.execPath, PROGRAM], {
    cwd: join(import.meta.dirname, "../../.."),
    env: {
      ...{ PATH: process.env.PATH, ...compiled(), DATA_DIR: join(scratch(), "d") },
      ...{ PORT: "0", ADMIN_PORT: "0", DRAIN_DELAY: "0" },
    },
    stdio: ["ignore", "pipe", "ignore"],
  });
  const [line] = await once(child.stdout, "data");
  const ready = JSON.parse(String(line).split("\n")[0] ?? "");
  const head = "POST /v1/auth/refresh HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{";
  const slow = Array.from({ length: 200 }, () => dial(ready.public));
  for (const { socket } of slow) socket.write(head);
  await Promise.any(slow.map(({ closed }) => closed)); // The listener closes a connection when too many are open.
  expect(await statusFrom(ready.public, "127.0.0.2")).toBe("200");
  expect(await statusFrom(ready.admin, "127.0.0.1")).toBe("200");
  child.kill("SIGKILL");
  await once(child, "exit");
});

test.each([
  ["HTTP/1.1, a body that does not come", "Content-Length: 100", "{"],
  ["HTTP/1.1, a body in pieces that never ends", "Transfer-Encoding: chunked", "1\r\n{\r\n"],
])("a request takes no longer than REQUEST_TIMEOUT over %s", async (_, length, body) => {
  const service = await startService({ REQUEST_TIMEOUT: "1s" });
  // The request has a valid credential, because without one the service refuses it and does not wait for its body.
  const credential = `Cookie: refresh_token=${(await logIn(service)).refreshToken}\r\n`;
  const { socket, closed } = dial(service.publicUrl);
  socket.write(`POST /v1/auth/refresh HTTP/1.1\r\nHost: x\r\n${credential}${length}\r\n\r\n${body}`);
  const drip = setInterval(() => socket.write(length.startsWith("T") ? "1\r\n \r\n" : " "), 100);
  expect(await closed).toMatch(/^HTTP\/1\.1 408 /);
  clearInterval(drip);
  await service.stop();
});

test("a stream takes no longer than REQUEST_TIMEOUT, whatever PINGs its connection sends", async () => {
  const service = await startService({ REQUEST_TIMEOUT: "1s" });
  const session = connectHttp2(service.publicUrl);
  session.on("error", () => {});
  const credential = cookie((await logIn(service)).refreshToken);
  const stream = session.request({ ":method": "POST", ":path": "/v1/auth/refresh", ...credential });
  stream.on("error", () => {});
  stream.write("{");
  const drip = setInterval(() => {
    session.ping(() => {});
    stream.write(" ");
  }, 100);
  await new Promise((resolve) => stream.once("close", resolve));
  expect(stream.rstCode).toBe(11);
  clearInterval(drip);
  expect(session.closed).toBe(false);
  session.destroy();
  await service.stop();
});

/** Opens an HTTP/2 connection from an address that has a limit. */
function connectFrom(service: Service, localAddress: string) {
  const { port, hostname } = new URL(service.publicUrl);
  const socket = connect({ port: Number(port), host: hostname, localAddress });
  const session = connectHttp2(service.publicUrl, { createConnection: () => socket }).on("error", () => {});
  /** Sends 2,000 requests. Returns how many were responded to, and how many the limit allows in the time that this took. */
  async function flood(headers: OutgoingHttpHeaders, body = "") {
    const beganMs = performance.now();
    let served = 0;
    for (let batch = 0; batch < 40 && !session.closed && !session.destroyed; batch++) {
      const streams = Array.from({ length: 50 }, () => {
        const stream = session.request(headers).on("error", () => {});
        stream.on("response", () => served++).resume();
        stream.end(body);
        return new Promise((resolve) => stream.once("close", resolve));
      });
      await Promise.all(streams);
    }
    const seconds = (performance.now() - beganMs) / 1000;
    // Beyond the limit, the requests of some batches may be under way when the connection is closed.
    return { served, allowed: 2 * MAX_UNAUTHENTICATED + UNAUTHENTICATED_PER_SECOND * seconds };
  }
  return { flood, close: () => session.destroy() };
}

test("revocations of what is no token count as unauthenticated by HTTP/2, and those of tokens do not", async () => {
  const service = await startService({ RATE_LIMIT_FAILURES: "off" });
  const { flood, close } = connectFrom(service, "127.0.0.8");
  const headers = {
    ":method": "POST",
    ":path": "/v1/oauth/revoke",
    "content-type": "application/x-www-form-urlencoded",
  };
  expect((await flood(headers, `token=${(await logIn(service)).refreshToken}`)).served).toBe(2_000);
  const { served, allowed } = await flood(headers, "token=garbage");
  expect(served).toBeLessThan(allowed);
  close();
  await service.stop();
});

test("calls that need no credential count as unauthenticated by HTTP/2, however their paths are written", async () => {
  const provider = await startIssuer();
  const service = await startService({ ...provider.env, RATE_LIMIT_FAILURES: "off" });
  const post = { ":method": "POST", "content-type": "application/json" };
  // The form of a refresh token with a key that no instance has.
  const ofUnknownKey = `refresh_token=${"AQ".padEnd(96, "A")}`;
  for (const [index, [headers, body]] of (
    [
      [{ ":path": "/v1/auth/login" }, ""],
      [{ ":path": "/v1/auth/sign-out" }, ""],
      [{ ...post, ":path": "/v1/auth/device/refresh" }, ""],
      [{ ...post, ":path": "/v1/auth/device/refresh", cookie: ofUnknownKey }, ""],
      [{ ...post, ":path": "/v1/auth/device/%72efresh" }, ""],
      [{ ...post, ":path": "/auth.v1.SessionService/RenewDevice" }, "{}"],
      [{ ...post, ":path": "/auth.v1.OAuthService/GetMetadata" }, "{}"],
    ] as const
  ).entries()) {
    const { flood, close } = connectFrom(service, `127.0.1.${index + 1}`);
    const { served, allowed } = await flood(headers, body);
    expect(served, headers[":path"]).toBeLessThan(allowed);
    close();
  }
  await service.stop();
  provider.stop();
});

const NO_LIMIT = { openFiles: Number.POSITIVE_INFINITY, memory: Number.POSITIVE_INFINITY };
const settings = (trustProxy = 0) => ({
  maxConnections: 10_000,
  maxConnectionsPerAddress: undefined,
  maxBodyBytes: 65_536,
  requestTimeoutMs: 1,
  trustProxy,
});

test.each([
  ["no limit of open files", {}, 0, [10_000, 7_500, 1_000]],
  ["few open files", { openFiles: 1_064 }, 0, [750, 563, 250]],
  ["very few", { openFiles: 20 }, 0, [4, 3, 4]],
  ["a proxy in front", {}, 1, [10_000, 10_000, 1_000]],
  ["little memory", { memory: 512 * 2 ** 20 }, 0, [3_369, 2_527, 1_000]],
  ["too little memory", { memory: 64 * 2 ** 20 }, 0, [4, 3, 4]],
])("%s", (_, given, trustProxy, expected) => {
  const limits = listenerLimits(settings(trustProxy), { ...NO_LIMIT, ...given });
  expect([limits.public.maxConnections, limits.public.maxConnectionsPerAddress, limits.admin.maxConnections]).toEqual(
    expected,
  );
});

test("connections and bodies together never take more than the memory of the container", () => {
  const bytes = fc.integer({ min: 300 * 2 ** 20, max: 4 * 2 ** 30 });
  fc.assert(
    fc.property(bytes, (memory) => {
      const limits = listenerLimits(settings(), { ...NO_LIMIT, memory });
      const connections = (limits.public.maxConnections + limits.admin.maxConnections) * 36 * 1024;
      const bodies = limits.public.maxPendingBodies * settings().maxBodyBytes * 1.5;
      expect(256 * 2 ** 20 + connections + bodies).toBeLessThanOrEqual(memory);
    }),
  );
});

test.each([
  ["deploy/kubernetes/base/deployment.yaml", /memory: (\d+)Mi\n/g],
  ["deploy/helm/session-service/values.yaml", /memory: (\d+)Mi\n/g],
])("the memory limit of %s allows what the service takes where memory has no limit", (file, pattern) => {
  const found = [...readFileSync(file, "utf8").matchAll(pattern)].map(([, mebibytes]) => Number(mebibytes) * 2 ** 20);
  const memory = Math.max(...found);
  expect(listenerLimits(settings(), { ...NO_LIMIT, memory })).toEqual(listenerLimits(settings(), NO_LIMIT));
});
