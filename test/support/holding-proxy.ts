/** A TCP proxy that can hold back what clients send and forward it later, without closing connections. It can also lose the replies. */
import { startTcpProxy, type TcpProxy } from "./tcp-proxy.ts";

export type HoldingProxy = Pick<TcpProxy, "port" | "stop"> & {
  /** Holds back everything that clients send, also on connections that close in the meantime. */
  hold(): void;
  /** Forwards the bytes that were held back, and all later ones. */
  release(): void;
  /** Drops everything that the server sends. */
  loseReplies(): void;
  /** Cuts all connections. On the connections that are opened afterwards, the replies of the server are forwarded. */
  recover(): void;
};

export async function startHoldingProxy(target: number): Promise<HoldingProxy> {
  let holding = false;
  let losing = false;
  const held: (() => void)[] = [];
  const inOrder = (step: () => void) => {
    if (holding) held.push(step);
    else step();
  };
  const { port, sockets, stop } = await startTcpProxy(target, (client, upstream) => {
    upstream.on("data", (bytes) => losing || client.write(bytes)).on("end", () => client.end());
    client.on("data", (bytes) => inOrder(() => upstream.write(bytes)));
    client.on("close", () => inOrder(() => upstream.end()));
  });
  return {
    port,
    stop,
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
  };
}
