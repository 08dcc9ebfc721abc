/**
 * A TCP proxy with the faults of networks: it stops forwarding in both directions, forgets, cuts or half-closes connections, and sends
 * bytes of its own.
 */
import type { Socket } from "node:net";
import { startTcpProxy, type TcpProxy } from "./tcp-proxy.ts";

export type FaultyProxy = Pick<TcpProxy, "port" | "stop"> & {
  /** Returns how many connections clients have opened. */
  readonly opened: () => number;
  /** Stops forwarding in both directions. New connections can still be opened. */
  hold(): void;
  /** Forwards the bytes that were held back, and all later ones. */
  release(): void;
  /** Forwards nothing more on the connections that are open, and does not close them either. Later connections work. */
  forget(): void;
  /** Resets all connections. */
  reset(): void;
  /** Half-closes all connections: each client receives the end of the server's data, and can still send. */
  end(): void;
  /** Sends bytes to all clients, which look as if the server had sent them. */
  inject(bytes: Buffer): void;
};

export async function startFaultyProxy(target: number): Promise<FaultyProxy> {
  let [holding, opened, forgotten] = [false, 0, 0];
  const held: (() => void)[] = [];
  const clients = new Set<Socket>();
  const inOrder = (step: () => void) => {
    if (holding) held.push(step);
    else step();
  };
  const pass = (from: Socket, to: Socket) => {
    const before = forgotten;
    const forward = (step: () => void) => inOrder(() => forgotten === before && step());
    from.on("data", (bytes) => forward(() => to.writable && to.write(bytes)));
    from.on("end", () => forward(() => to.end()));
    from.on("close", () => forward(() => to.destroy()));
  };
  const { port, stop } = await startTcpProxy(
    target,
    (client, upstream) => {
      opened++;
      clients.add(client);
      client.on("close", () => clients.delete(client));
      pass(client, upstream);
      pass(upstream, client);
    },
    { noDelay: true, allowHalfOpen: true },
  );
  return {
    port,
    stop,
    opened: () => opened,
    hold() {
      holding = true;
    },
    release() {
      holding = false;
      for (const step of held.splice(0)) step();
    },
    forget() {
      forgotten++;
    },
    reset() {
      for (const client of clients) client.resetAndDestroy();
    },
    end() {
      for (const client of clients) client.end();
    },
    inject(bytes) {
      for (const client of clients) if (client.writable) client.write(bytes);
    },
  };
}
