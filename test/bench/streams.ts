// Measures the memory of idle streams: server-sent events over HTTP/2 that are open but send nothing, in a separate server process.
//
//     npm run bench:streams [-- --streams 10000] [--json]

import { fork } from "node:child_process";
import { once } from "node:events";
import { type ClientHttp2Session, connect, createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { createHttpHandler } from "../../src/connect-http-routes/index.ts";
import { RelayServiceRoutes } from "../connect-http-routes/gen/relay/v1/relay_http.ts";
import { relayRoutes } from "../connect-http-routes/support/relay-service.ts";

const STREAMS_PER_SESSION = 100;
/** Limit of the memory of one stream, in bytes. */
const LIMIT = 40_000;

if (process.argv[2] === "server") {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const handler = createHttpHandler({
    tables: [RelayServiceRoutes],
    routes: relayRoutes(),
    heartbeatIntervalMs: 60_000,
  });
  const server = createServer({ settings: { maxConcurrentStreams: STREAMS_PER_SESSION } }, handler).listen(
    0,
    "127.0.0.1",
  );
  await once(server, "listening");
  process.on("message", () => {
    collect();
    collect();
    const { heapUsed, external, rss } = process.memoryUsage();
    process.send?.({ used: heapUsed + external, rss });
  });
  process.send?.((server.address() as AddressInfo).port);
} else await measure(argument("--streams", 10_000));

function argument(name: string, fallback: number): number {
  const at = process.argv.indexOf(name);
  return at === -1 ? fallback : Number(process.argv[at + 1]);
}

async function measure(count: number): Promise<void> {
  const child = fork(import.meta.filename, ["server"]);
  const sessions: ClientHttp2Session[] = [];
  try {
    const [port] = (await once(child, "message")) as [number];
    const memory = async () => {
      child.send("memory");
      const [usage] = (await once(child, "message")) as [{ used: number; rss: number }];
      return usage;
    };
    const open = async (session: ClientHttp2Session) => {
      const stream = session.request({ ":path": "/v1/counts/a?number=1&how=hang", accept: "text/event-stream" });
      // The first message is all that the server sends on this stream. After it has arrived, the stream is idle.
      await once(stream, "data");
    };
    const openSession = async () => {
      const session = connect(`http://127.0.0.1:${port}`);
      sessions.push(session);
      await Promise.all(Array.from({ length: STREAMS_PER_SESSION }, () => open(session)));
    };
    await openSession();
    const before = await memory();
    const more = Math.max(1, Math.round(count / STREAMS_PER_SESSION));
    for (let opened = 0; opened < more; opened++) await openSession();
    const after = await memory();
    const streams = more * STREAMS_PER_SESSION;
    const bytesPerStream = Math.round((after.used - before.used) / streams);
    const rssPerStream = Math.round((after.rss - before.rss) / streams);
    if (process.argv.includes("--json")) console.log(JSON.stringify({ streams, bytesPerStream, rssPerStream }));
    else
      console.log(`${streams} idle streams: ${bytesPerStream} bytes each (heap and buffers), ${rssPerStream} resident`);
    if (bytesPerStream > LIMIT) {
      console.error(`more than the limit of ${LIMIT} bytes`);
      process.exitCode = 1;
    }
  } finally {
    for (const session of sessions) session.destroy();
    child.kill();
  }
}
