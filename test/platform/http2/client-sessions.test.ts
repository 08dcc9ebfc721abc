/** The connections of a client. A network fault fails only the requests that are in flight during it, and the next request is served. */
import { once } from "node:events";
import { type ClientHttp2Stream, createServer, type OutgoingHttpHeaders, type ServerHttp2Session } from "node:http2";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { Code } from "@connectrpc/connect";
import fc from "fast-check";
import { beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { ClientSessions } from "../../../src/platform/http2/client-sessions.ts";
import { FRAME, frame } from "../../attacks/frames.ts";
import { type FaultyProxy, startFaultyProxy } from "../../support/faulty-proxy.ts";
import { until } from "../../support/until.ts";

/** How many random sequences of network faults the test tries. With HOLDS=long there are more. */
const RUNS = process.env.HOLDS === "long" ? 3000 : 60;
const INTERVAL_MS = 2000;
const TIMEOUT_MS = 5000;
const KEEP_ALIVE = { pingIntervalMs: INTERVAL_MS, pingTimeoutMs: TIMEOUT_MS };

beforeEach(() => {
  // Only these functions are replaced; sockets and the turns of the event loop are real.
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  onTestFinished(() => void vi.useRealTimers());
});

test.each(["127.0.0.1", "::1"])(
  "a request names its server as the URL does, or as its own `host`: %s",
  async (address) => {
    const server = createServer((request, response) =>
      response.end(`${request.headers[":authority"]} ${request.headers.host}`),
    ).listen(0, address);
    await once(server, "listening");
    const url = new URL(
      `http://${address.includes(":") ? `[${address}]` : address}:${(server.address() as AddressInfo).port}`,
    );
    const sessions = new ClientSessions(url.href);
    onTestFinished(() => {
      sessions.close();
      server.close();
    });
    const namesFor = async (headers: OutgoingHttpHeaders) => {
      const stream = await sessions.request("GET", "/", headers, {});
      return (await once(stream.setEncoding("utf8"), "data"))[0];
    };
    expect(await namesFor({})).toBe(`${url.host} undefined`);
    expect(await namesFor({ host: "admin.example" })).toBe("undefined admin.example");
  },
);

test("servers push nothing: a pushed stream that fails would end the process", async () => {
  const server = createServer((_, response) => response.end(String(response.stream.pushAllowed))).listen(
    0,
    "127.0.0.1",
  );
  await once(server, "listening");
  const sessions = new ClientSessions(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  onTestFinished(() => {
    sessions.close();
    server.close();
  });
  const stream = await sessions.request("GET", "/", {}, { endStream: true });
  expect((await once(stream.setEncoding("utf8"), "data"))[0]).toBe("false");
});

type ClientOptions = typeof KEEP_ALIVE & { readonly pingIdleConnection?: boolean };

type World = {
  readonly sessions: ClientSessions;
  readonly proxy: FaultyProxy;
  /** Connections on the side of the server. */
  readonly accepted: ReadonlySet<ServerHttp2Session>;
  stop(): Promise<void>;
};

/** Starts a server: `/` responds completely, `/open` responds with only a head. */
async function startWorld(options: ClientOptions = KEEP_ALIVE): Promise<World> {
  const accepted = new Set<ServerHttp2Session>();
  const server = createServer((request, response) => {
    response.writeHead(200);
    if (request.url !== "/open") response.end("served");
  });
  server.on("session", (session) => {
    accepted.add(session);
    session.on("error", () => {}).once("close", () => accepted.delete(session));
  });
  server.on("sessionError", () => {}).listen(0, "127.0.0.1");
  await once(server, "listening");
  const proxy = await startFaultyProxy((server.address() as AddressInfo).port);
  const sessions = new ClientSessions(`http://127.0.0.1:${proxy.port}`, options);
  const stop = async () => {
    sessions.close();
    await proxy.stop();
    server.close();
  };
  return { sessions, proxy, accepted, stop };
}

async function start(options?: ClientOptions): Promise<World> {
  const world = await startWorld(options);
  onTestFinished(world.stop);
  return world;
}

async function send(sessions: ClientSessions, path = "/"): Promise<ClientHttp2Stream> {
  const stream = await sessions.request("GET", path, {}, { endStream: true });
  stream.on("data", () => sessions.notifyResponseByteRead(stream));
  return stream;
}

/** Returns the status of a response. */
async function get(sessions: ClientSessions, path?: string): Promise<number> {
  const stream = await send(sessions, path);
  const [head] = await once(stream, "response");
  return head[":status"];
}

/** Advances the fake clock, and waits until the consequences of the timers have happened. */
async function pass(ms: number): Promise<void> {
  await vi.advanceTimersByTimeAsync(ms);
  await new Promise(setImmediate);
  await new Promise(setImmediate);
}

test("a request that follows at once on a PING that timed out is served", async () => {
  const { sessions, proxy } = await start();
  const open = await send(sessions, "/open");
  await once(open, "response");
  proxy.hold();
  const again = new Promise<number>((resolve, reject) => {
    open.once("error", (error) => {
      expect(error).toMatchObject({ code: Code.Unavailable });
      get(sessions).then(resolve, reject);
    });
  });
  await pass(INTERVAL_MS);
  await pass(TIMEOUT_MS);
  proxy.release();
  expect(await again).toBe(200);
});

test("requests before and after the end of a silent connection are served by the next one", async () => {
  const { sessions, proxy } = await start();
  const open = await send(sessions, "/open");
  await once(open, "response");
  proxy.hold();
  const after = new Promise<number>((resolve, reject) => {
    open.once("error", () => get(sessions).then(resolve, reject));
  });
  // A PING is under way by now, so the next request waits for its reply.
  await pass(INTERVAL_MS + 1);
  const before = get(sessions);
  await pass(TIMEOUT_MS);
  proxy.release();
  expect(await Promise.all([before, after])).toEqual([200, 200]);
  expect(proxy.opened()).toBe(2);
});

test("an idle connection is asked before it is used again, and replaced if it is silent", async () => {
  const { sessions, proxy } = await start();
  expect(await get(sessions)).toBe(200);
  await pass(INTERVAL_MS + 1);
  expect(await get(sessions)).toBe(200);
  expect(proxy.opened()).toBe(1);
  await pass(INTERVAL_MS + 1);
  proxy.hold();
  const waiting = get(sessions);
  await pass(TIMEOUT_MS);
  proxy.release();
  expect(await waiting).toBe(200);
  expect(proxy.opened()).toBe(2);
});

test.each([true, false])(
  "an idle connection that is silent is given up only where idle ones are asked: %s",
  async (asked) => {
    const { sessions, proxy } = await start({ ...KEEP_ALIVE, pingIdleConnection: asked });
    expect(await get(sessions)).toBe(200);
    await pass(1);
    proxy.hold();
    await pass(INTERVAL_MS);
    await pass(TIMEOUT_MS);
    proxy.release();
    expect(await get(sessions)).toBe(200);
    expect(proxy.opened()).toBe(asked ? 2 : 1);
  },
);

test("a PING that is acknowledged shows that the connection is alive for another interval", async () => {
  const { sessions, accepted } = await start();
  await once(await send(sessions, "/open"), "response");
  const [session] = accepted;
  let pings = 0;
  session?.on("ping", () => void pings++);
  const first = once(session as ServerHttp2Session, "ping");
  await pass(INTERVAL_MS);
  await first;
  for (let time = 0; time < 50; time++) await pass(1);
  expect(pings).toBe(1);
});

test("a connection that does not open is given up", async () => {
  const silent = createTcpServer(() => {}).listen(0, "127.0.0.1");
  onTestFinished(() => void silent.close());
  await once(silent, "listening");
  const sessions = new ClientSessions(`https://127.0.0.1:${(silent.address() as AddressInfo).port}`, KEEP_ALIVE);
  const waiting = expect(sessions.request("GET", "/", {}, {})).rejects.toMatchObject({ code: Code.Unavailable });
  await once(silent, "connection");
  await pass(TIMEOUT_MS);
  await waiting;
});

test("after GOAWAY requests take another connection, and those before it finish", async () => {
  const { sessions, proxy, accepted } = await start();
  const open = await send(sessions, "/open");
  await once(open, "response");
  const [first] = accepted;
  first?.goaway();
  await until(async () => expect(await get(sessions).then(() => proxy.opened())).toBe(2));
  expect(open.destroyed).toBe(false);
});

test("too many pings, says the server: the next connection sends half as many", async () => {
  const { sessions, proxy, accepted } = await start();
  expect(await get(sessions)).toBe(200);
  for (const session of accepted) session.goaway(11, 0, Buffer.from("too_many_pings"));
  await until(async () => expect(await get(sessions).then(() => proxy.opened())).toBe(2));
  const open = await send(sessions, "/open");
  await once(open, "response");
  proxy.hold();
  let failed = false;
  open.on("error", () => {
    failed = true;
  });
  await pass(INTERVAL_MS);
  await pass(TIMEOUT_MS);
  expect(failed).toBe(false);
  await pass(INTERVAL_MS);
  await pass(TIMEOUT_MS);
  await until(async () => expect(failed).toBe(true));
});

test("once it is closed, calls fail: those under way, those that wait, and those to come", async () => {
  const { sessions, proxy } = await start();
  const open = await send(sessions, "/open");
  await once(open, "response");
  proxy.hold();
  await pass(INTERVAL_MS + 1);
  const calls = [once(open, "end"), get(sessions)];
  sessions.close();
  calls.push(get(sessions));
  const outcomes = await Promise.allSettled(calls);
  expect(outcomes).toMatchObject(outcomes.map(() => ({ status: "rejected", reason: { code: Code.Canceled } })));
  expect(proxy.opened()).toBe(1);
});

const STEPS = ["request", "open", "wait", "ping", "hold", "release", "reset", "end", "garbage", "goaway"] as const;
type Step = (typeof STEPS)[number];

async function take(step: Step, { sessions, proxy, accepted }: World, onError: () => void): Promise<void> {
  const request = async (path: string) => {
    const stream = await send(sessions, path);
    // `onError` acts as an application that sends another request as soon as a request has failed.
    stream.once("error", onError).resume();
  };
  switch (step) {
    case "request":
      return void request("/").catch(() => {});
    case "open":
      return void request("/open").catch(() => {});
    case "wait":
      return pass(INTERVAL_MS);
    case "ping":
      return pass(TIMEOUT_MS);
    case "garbage":
      return proxy.inject(frame(FRAME.headers, 0, 0, Buffer.from("nothing")));
    case "goaway":
      for (const session of accepted) if (!session.destroyed) session.goaway();
      return;
    default:
      return proxy[step]();
  }
}

test("any sequence of faults throws nothing, and leaves a client that is served", { timeout: 600_000 }, async () => {
  const sequences = fc.array(fc.constantFrom(...STEPS), { minLength: 2, maxLength: 14 });
  await fc.assert(
    fc.asyncProperty(sequences, async (steps) => {
      const world = await startWorld();
      try {
        const again = () =>
          void send(world.sessions)
            .then((stream) => stream.on("error", () => {}))
            .catch(() => {});
        for (const step of steps) {
          await take(step, world, again);
          await new Promise(setImmediate);
        }
        world.proxy.release();
        // A request during the fault may fail, but one of the following requests must succeed.
        await vi.waitFor(() => pass(TIMEOUT_MS).then(() => get(world.sessions)), { timeout: 30_000 });
      } finally {
        await world.stop();
      }
    }),
    { numRuns: RUNS },
  );
});
