/** A TCP proxy in front of a server on this machine. Its users decide what happens to the bytes. */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type ServerOpts, type Socket } from "node:net";

export type TcpProxy = {
  readonly port: number;
  /** The open sockets, of clients and to the server. */
  readonly sockets: ReadonlySet<Socket>;
  stop(): Promise<void>;
};

/** @param join is called for each connection of a client, with the one to the server. */
export async function startTcpProxy(
  target: number,
  join: (client: Socket, upstream: Socket) => void,
  options: ServerOpts = {},
): Promise<TcpProxy> {
  const sockets = new Set<Socket>();
  const server = createServer(options, (client) => {
    const upstream = connect({ port: target, host: "127.0.0.1", ...options });
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("error", () => {}).on("close", () => sockets.delete(socket));
    }
    join(client, upstream);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    sockets,
    async stop() {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, "close");
    },
  };
}
