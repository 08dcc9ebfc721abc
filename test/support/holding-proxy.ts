/** A TCP proxy that can hold back what clients send, without closing connections, and pass it on later. It can also lose the replies. */
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";

export type HoldingProxy = {
  readonly port: number;
  /** From now on nothing that clients send is passed on, even of connections that are closed in the meantime. */
  hold(): void;
  /** Passes on the bytes that were held back, and everything from now on. */
  release(): void;
  /** From now on nothing that the server sends is passed on. */
  loseReplies(): void;
  /** Cuts the connections, and passes on the replies of new ones. */
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
