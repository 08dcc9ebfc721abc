/** Requests on connections that waited while the test blocked the event loop. */
import { EventEmitter, once } from "node:events";
import { createServer, type Socket } from "node:net";
import { Worker } from "node:worker_threads";
import { afterEach, expect, test } from "vitest";
import { Turns, turns } from "../../../src/platform/clock/turns.ts";
import { type HttpRequest, WAITED_MS } from "../../../src/platform/listener/handler.ts";
import { connectTo, LateConnections } from "../../../src/platform/listener/late-connections.ts";
import { type Listener, openListener } from "../../../src/platform/listener/listener.ts";

const MAX_WAIT_MS = 400;
/**
 * Two flags that the test and the client share. The client connects when the first is set, and sends two requests, one after the other.
 * It sets the second flag when the system has accepted the first request.
 */
const [MAY_CONNECT, IS_SENT] = [0, 1];
const CLIENT = `
  const [MAY_CONNECT, IS_SENT] = [0, 1];
  const { connect } = require("node:net");
  const { parentPort, workerData: { port, flags } } = require("node:worker_threads");
  Atomics.wait(flags, MAY_CONNECT, 0);
  const socket = connect(port, "127.0.0.1", () => {
    socket.write("GET /first HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n", () => {
      Atomics.store(flags, IS_SENT, 1);
      Atomics.notify(flags, IS_SENT);
    });
  });
  socket.once("data", () => {
    socket.write("GET /second HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n");
    socket.once("data", () => parentPort.postMessage("done"));
  });
`;

let listener: Listener | undefined;
afterEach(() => listener?.close(0));

const nextTurn = () =>
  new Promise<void>((resolve) => {
    const stop = turns.follow(() => {
      stop();
      resolve();
    });
  });

async function listen() {
  const waits = new Map<string, number>();
  listener = await openListener("test", "127.0.0.1", 0, { limits: { maxWaitMs: MAX_WAIT_MS } });
  const serve = () =>
    listener?.serve((request, response) => {
      waits.set(request.url ?? "", request[WAITED_MS] ?? 0);
      response.end("x");
    });
  const { port } = listener;
  const flags = new Int32Array(new SharedArrayBuffer(8));
  const client = new Worker(CLIENT, { eval: true, workerData: { port, flags } });
  await once(client, "online");
  const connect = () => {
    Atomics.store(flags, MAY_CONNECT, 1);
    Atomics.notify(flags, MAY_CONNECT);
  };
  return { waits, serve, client, connect, flags };
}

test("what came with a connection that was not accepted for long has waited as long, and what comes later has not", async () => {
  const { waits, serve, client, connect, flags } = await listen();
  serve();
  await nextTurn();
  const done = once(client, "message");
  connect();
  Atomics.wait(flags, IS_SENT, 0); // This blocks the process of the listener until the first request has been sent.
  for (const until = performance.now() + MAX_WAIT_MS; performance.now() < until; );
  await done;
  expect(waits.get("/first")).toBeGreaterThan(MAX_WAIT_MS);
  expect(waits.get("/second")).toBe(0);
});

test("what came while nothing was served yet has waited since then", async () => {
  const { waits, serve, client, connect } = await listen();
  const done = once(client, "message");
  connect();
  while (listener?.connections() === 0) await nextTurn();
  const acceptedMs = performance.now();
  while (performance.now() - acceptedMs < MAX_WAIT_MS) await nextTurn();
  serve();
  await done;
  expect(waits.get("/first")).toBeGreaterThan(MAX_WAIT_MS);
  expect(waits.get("/second")).toBe(0);
});

/**
 * Simulates connections that are accepted after the event loop was blocked. The clock and the event loop are simulated, and so is the
 * connection that the process makes to itself.
 */
function stalled() {
  const state = { nowMs: 0, ended: 0, endTurn() {}, own: (_: string) => {} };
  const turnsOfTest = new Turns({
    clock: Object.assign(() => state.nowMs, { refresh() {} }),
    every(_, then) {
      state.endTurn = then;
      return () => {};
    },
    afterPoll: (then) => then(),
  });
  turnsOfTest.follow(() => {});
  const late = new LateConnections({
    ...{ maxWaitMs: MAX_WAIT_MS, turns: turnsOfTest, afterPoll() {} },
    connectSelf(onConnected) {
      state.own = onConnected;
      return () => void state.ended++;
    },
  });
  state.nowMs = 2 * MAX_WAIT_MS;
  /** Returns how long the first request of a connection may have waited. */
  const accepted = (remotePort: number) => {
    const socket = Object.assign(new EventEmitter(), { remoteAddress: "::1", remotePort }) as EventEmitter & Socket;
    late.accept(socket);
    const request = { socket } as unknown as HttpRequest;
    late.take(request);
    return request[WAITED_MS] ?? 0;
  };
  return { state, accepted };
}

test.each(["before it is accepted", "after it was accepted"])(
  "a stall ends with the process's own connection, whose address becomes known %s",
  (when) => {
    const { state, accepted } = stalled();
    expect(accepted(1)).toBe(2 * MAX_WAIT_MS);
    if (when === "before it is accepted") state.own("::1 2");
    accepted(2);
    if (when === "after it was accepted") state.own("::1 2");
    expect(state.ended).toBe(1);
    state.endTurn();
    expect(accepted(3)).toBe(0);
  },
);

test("a listener that is closed during a stall ends the stall", () => {
  // One stall may follow another when the process's own connection is reported, and a stop may have closed the listener by then.
  const closed = createServer();
  let ends = 0;
  const endOwn = connectTo(closed)(
    () => {},
    () => void ends++,
  );
  endOwn();
  expect(ends).toBe(1);
});
