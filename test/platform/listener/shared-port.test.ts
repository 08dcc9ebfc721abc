import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { connectTo } from "../../../src/platform/listener/late-connections.ts";
import { until } from "../../support/until.ts";

async function listenOn(port: number, onConnection: (socket: Socket) => void) {
  const server = createServer(onConnection).listen({ port, host: "127.0.0.1", reusePort: true });
  onTestFinished(() => void server.close());
  await once(server, "listening");
  return server;
}

test("a process that shares its port connects again until the connection is its own", async () => {
  let onOwn = (_client: string) => {};
  const own = await listenOn(0, (socket) => {
    socket.on("error", () => {});
    onOwn(`${socket.remoteAddress} ${socket.remotePort}`);
  });
  // The second listener stands for another process. It closes connections that speak neither HTTP/1.1 nor HTTP/2.
  await listenOn((own.address() as AddressInfo).port, (socket) => {
    socket.on("error", () => {}).once("data", () => socket.destroy());
  });
  for (let round = 0; round < 10; round++) {
    const accepted = new Promise<string>((resolve) => {
      onOwn = resolve;
    });
    const ended = Promise.withResolvers<void>();
    let connected = "";
    const end = connectTo(own, true)((client) => {
      connected = client;
    }, ended.resolve);
    const client = await accepted;
    await until(async () => expect(connected).toBe(client));
    end();
    await ended.promise;
  }
});
