/** Requests on connections that waited while the test held up its own process. */
import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { afterEach, expect, test } from "vitest";
import { turns } from "../../src/clock/turns.ts";
import { waitOf } from "../../src/listener/late-connections.ts";
import { type Listener, openListener } from "../../src/listener/listener.ts";

const MAX_WAIT_MS = 400;
/** Connects when it may, and sends two requests one after another; says when the first is in the hands of the system. */
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
      waits.set(request.url ?? "", waitOf(request));
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
  Atomics.wait(flags, IS_SENT, 0); // This process does not run until the request has arrived.
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
