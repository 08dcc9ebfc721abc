/** A TCP load balancer. It distributes new connections over backends whose /readyz returns 200. Open connections stay where they are. */
import { EventEmitter, once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { request } from "./raw-http.ts";

/** How often each backend is checked, in ms. */
const CHECK_MS = 200;
/** After this many failed checks in a row, a backend gets no connections. */
const FALL = 2;

type Backend = { readonly url: string; refusals: number; isUp: boolean };

export type Balancer = {
  readonly url: string;
  /** Adds a backend. Resolves when new connections are distributed to it. */
  add(url: string): Promise<void>;
  remove(url: string): void;
  close(): void;
};

export async function startBalancer(): Promise<Balancer> {
  const backends: Backend[] = [];
  const sockets = new Set<Socket>();
  const changes = new EventEmitter();
  let turn = 0;
  const check = async (backend: Backend) => {
    const status = await request(backend.url, { path: "/readyz" }).then(
      (response) => response.status,
      () => 0,
    );
    backend.refusals = status === 200 ? 0 : backend.refusals + 1;
    if (status === 200) backend.isUp = true;
    if (backend.refusals >= FALL) backend.isUp = false;
    changes.emit("checked");
  };
  const timer = setInterval(() => {
    for (const backend of backends) void check(backend);
  }, CHECK_MS);
  const server = createServer({ noDelay: true, allowHalfOpen: true }, (client) => {
    const up = backends.filter(({ isUp }) => isUp);
    const backend = up[turn++ % up.length];
    if (backend === undefined) return void client.destroy();
    const { hostname, port } = new URL(backend.url);
    const upstream = connect({ port: Number(port), host: hostname, noDelay: true, allowHalfOpen: true });
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(from);
      from.pipe(to);
      from.once("close", () => sockets.delete(from));
      from.on("error", () => to.resetAndDestroy());
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async add(url) {
      const backend = { url, refusals: 0, isUp: false };
      backends.push(backend);
      while (!backend.isUp) await once(changes, "checked");
    },
    remove(url) {
      backends.splice(0, backends.length, ...backends.filter((one) => one.url !== url));
    },
    close() {
      clearInterval(timer);
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}
