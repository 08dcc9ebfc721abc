/** A TCP proxy that can hold back what clients send and forward it later, without closing connections. It can also lose the replies. */
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";

export type HoldingProxy = {
  readonly port: number;
  /** Holds back everything that clients send, also on connections that close in the meantime. */
  hold(): void;
  /** Forwards the bytes that were held back, and all later ones. */
  release(): void;
  /** Drops everything that the server sends. */
  loseReplies(): void;
  /** Cuts all connections. On the connections that are opened afterwards, the replies of the server are forwarded. */
  recover(): void;
  stop(): Promise<void>;
};

export async function startHoldingProxy(target: number): Promise<HoldingProxy> {
  let holding = false;
  let losing = false;
  const held: (() => void)[] = [];
  const sockets = new Set<Socket>();
  const inOrder = (step: () => void) => {
    if (holding) held.push(step);
    else step();
  };
  const server = createServer((client) => {
    const upstream = connect(target, "127.0.0.1");
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("error", () => {}).on("close", () => sockets.delete(socket));
    }
    upstream.on("data", (bytes) => losing || client.write(bytes)).on("end", () => client.end());
    client.on("data", (bytes) => inOrder(() => upstream.write(bytes)));
    client.on("close", () => inOrder(() => upstream.end()));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return {
    port: address.port,
    hold() {
      holding = true;
    },
    release() {
      holding = false;
      for (const step of held.splice(0)) step();
    },
    loseReplies() {
      losing = true;
    },
    recover() {
      losing = false;
      for (const socket of sockets) socket.destroy();
    },
    async stop() {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, "close");
    },
  };
}
