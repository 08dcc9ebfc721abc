/**
 * A pool of HTTP/2 connections spreads calls over several servers, works on if one of them fails, and reports when no connection can take
 * another call.
 */
import { once } from "node:events";
import {
  type ClientHttp2Stream,
  createServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
} from "node:http2";
import { type AddressInfo, connect } from "node:net";
import { expect, onTestFinished, test, vi } from "vitest";
import { SessionPool } from "../../../src/platform/http2/session-pool.ts";
import { freePort } from "../../support/free-port.ts";
import { until } from "../../support/until.ts";

type Backend = {
  readonly url: string;
  readonly connections: ReadonlySet<ServerHttp2Session>;
  /** Ends the server and its connections, as if its process had died. */
  die(): Promise<void>;
};

/** Starts a server: `/` responds with the server's name, `/open` with only a head. */
async function startBackend(name: string, { port = 0, maxStreams = 100 } = {}): Promise<Backend> {
  const connections = new Set<ServerHttp2Session>();
  const server: Http2Server = createServer({ settings: { maxConcurrentStreams: maxStreams } }, (request, response) => {
    response.writeHead(200, { name });
    if (request.url !== "/open") response.end();
  });
  server.on("session", (session) => {
    connections.add(session);
    session.on("error", () => {}).once("close", () => connections.delete(session));
  });
  server.on("sessionError", () => {}).listen(port, "127.0.0.1");
  await once(server, "listening");
  const die = async () => {
    const closed = once(server, "close");
    server.close();
    for (const session of connections) session.destroy();
    await closed;
  };
  onTestFinished(async () => {
    if (server.listening) await die();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, connections, die };
}

function openPool(connections: number, ...backends: readonly Backend[]) {
  const failures: string[] = [];
  const [first = "", ...others] = backends.map(({ url }) => url);
  const onFailure = (authority: string) => failures.push(authority);
  const pool = new SessionPool([first, ...others], { connections, onFailure });
  onTestFinished(() => pool.close());
  return { pool, failures };
}

/** Resolves with the name of the server that responds: after its whole response, or after the head for `/open`. */
async function ask(pool: SessionPool, path = "/"): Promise<[name: string, stream: ClientHttp2Stream]> {
  const stream = await pool.request("GET", path, {}, { endStream: true });
  stream.on("data", () => pool.notifyResponseByteRead(stream));
  const closed = new Promise<void>((resolve) => stream.once("close", resolve));
  const head = await new Promise<IncomingHttpHeaders>((resolve, reject) => {
    stream.once("response", resolve).once("error", reject);
    void closed.then(() => reject(new Error("no response")));
  });
  if (path === "/") await closed;
  return [String(head.name), stream];
}

/** Sends requests until each of these servers has responded to one. */
async function askAll(pool: SessionPool, ...names: readonly string[]): Promise<void> {
  const left = new Set(names);
  while (left.size > 0) left.delete((await ask(pool))[0]);
}

test("calls go to every server", async () => {
  const { pool } = openPool(1, await startBackend("a"), await startBackend("b"));
  await askAll(pool, "a", "b");
  expect(pool.authority).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
});

test("open streams are spread evenly", async () => {
  const { pool } = openPool(1, await startBackend("a"), await startBackend("b"));
  await askAll(pool, "a", "b");
  const names: string[] = [];
  for (let i = 0; i < 10; i++) names.push((await ask(pool, "/open"))[0]);
  expect(names.filter((name) => name === "a")).toHaveLength(5);
});

test("a connection that has as many streams as its server allows is left out while others have room", async () => {
  const { pool } = openPool(1, await startBackend("small", { maxStreams: 1 }), await startBackend("large"));
  await askAll(pool, "small", "large");
  const names: string[] = [];
  for (let i = 0; i < 6; i++) names.push((await ask(pool, "/open"))[0]);
  expect(names.filter((name) => name === "small")).toHaveLength(1);
});

test("one server has as many connections as asked for", async () => {
  const backend = await startBackend("a");
  const { pool } = openPool(3, backend);
  await ask(pool);
  await until(async () => expect(backend.connections.size).toBe(3));
});

test("no call fails because one of two servers is away, which is reported", async () => {
  const [here, away] = [await startBackend("here"), await startBackend("away")];
  await away.die();
  const { pool, failures } = openPool(1, away, here);
  for (let i = 0; i < 20; i++) expect((await ask(pool))[0]).toBe("here");
  await until(async () => expect(failures).toContain(away.url));
});

test("a server that dies is left out, and is used again when it is back", async () => {
  const port = await freePort();
  const [a, b] = [await startBackend("a"), await startBackend("b", { port })];
  const { pool } = openPool(1, a, b);
  await askAll(pool, "a", "b");
  await b.die();
  await until(async () => expect(new Set([(await ask(pool))[0], (await ask(pool))[0]])).toEqual(new Set(["a"])));
  await startBackend("b again", { port });
  await until(async () => expect((await ask(pool))[0]).toBe("b again"));
});

test("the error of the connection is that of a call if no server is there, and the next call tries again", async () => {
  const port = await freePort();
  const backend = await startBackend("a", { port });
  await backend.die();
  const { pool } = openPool(2, backend);
  await expect(ask(pool)).rejects.toMatchObject({ code: "ECONNREFUSED" });
  await startBackend("a again", { port });
  expect((await ask(pool))[0]).toBe("a again");
});

test("a pool is full if every connection has as many streams as its server allows", async () => {
  const { pool } = openPool(2, await startBackend("a", { maxStreams: 2 }));
  expect(pool.isFull).toBe(false);
  await ask(pool);
  const streams: ClientHttp2Stream[] = [];
  // The pool opens further connections for these calls, so it is not full until all of them are in use.
  for (let i = 0; i < 4; i++) {
    await until(async () => expect(pool.isFull).toBe(false));
    streams.push((await ask(pool, "/open"))[1]);
  }
  await until(async () => expect(pool.isFull).toBe(true));
  streams[0]?.close();
  await until(async () => expect(pool.isFull).toBe(false));
});

test("a closed pool makes no calls", async () => {
  const { pool } = openPool(2, await startBackend("a"));
  await ask(pool);
  pool.close();
  await expect(ask(pool)).rejects.toThrow("closed by this client");
});

test("a server that cannot be reached is left alone for a second while another one serves", async () => {
  vi.useFakeTimers({ toFake: ["performance"] });
  onTestFinished(() => void vi.useRealTimers());
  const [dead, alive] = [await startBackend("dead"), await startBackend("alive")];
  await dead.die();
  const { pool, failures } = openPool(1, dead, alive);
  while (failures.length === 0) await ask(pool);
  for (let time = 0; time < 20; time++) expect((await ask(pool))[0]).toBe("alive");
  expect(failures).toEqual([dead.url]);
  vi.advanceTimersByTime(1_000);
  while (failures.length === 1) await ask(pool);
  for (let time = 0; time < 20; time++) await ask(pool);
  expect(failures).toHaveLength(2);
});

test("a renewed pool opens new connections with the new options, and its open calls go on", async () => {
  const backend = await startBackend("a");
  const { pool } = openPool(1, backend);
  const [, open] = await ask(pool, "/open");
  const [old] = backend.connections;
  let connectors = 0;
  const createConnection = (authority: URL) => {
    connectors++;
    return connect(Number(authority.port), authority.hostname);
  };
  pool.renew({ createConnection });
  await ask(pool);
  expect([connectors, backend.connections.size, open.destroyed]).toEqual([1, 2, false]);
  open.close();
  await until(() => expect(backend.connections.has(old as ServerHttp2Session)).toBe(false));
  await ask(pool);
  expect([connectors, backend.connections.size]).toEqual([1, 1]);
  // A connection without calls is closed at once.
  pool.renew({});
  await until(() => expect(backend.connections.size).toBe(0));
});
