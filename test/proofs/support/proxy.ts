/** A TCP proxy that cuts connections in the middle of requests, and whose target can be changed. */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

export class CuttingProxy {
  readonly port: number;
  /** The target of new connections. If it is undefined they are refused. */
  target: number | undefined;
  readonly #server: Server;
  readonly #pairs = new Set<readonly [Socket, Socket]>();

  private constructor(server: Server, target: number) {
    this.#server = server;
    this.port = (server.address() as AddressInfo).port;
    this.target = target;
    server.on("connection", (client) => this.#join(client));
  }

  static async to(target: number): Promise<CuttingProxy> {
    const server = createServer({ noDelay: true }).listen(0, "127.0.0.1");
    await once(server, "listening");
    return new CuttingProxy(server, target);
  }

  get connections(): number {
    return this.#pairs.size;
  }

  /** Cuts each connection with this likelihood. Requests that have already been forwarded are executed, but their responses are lost. */
  cut(likelihood = 1): void {
    for (const pair of this.#pairs) if (Math.random() < likelihood) for (const end of pair) end.resetAndDestroy();
  }

  async stop(): Promise<void> {
    this.#server.close();
    this.cut();
    await once(this.#server, "close");
  }

  #join(client: Socket): void {
    if (this.target === undefined) {
      client.resetAndDestroy();
      return;
    }
    const upstream = connect({ host: "127.0.0.1", port: this.target, noDelay: true });
    const pair = [client, upstream] as const;
    this.#pairs.add(pair);
    for (const end of pair) {
      end.on("error", () => {});
      end.once("close", () => {
        this.#pairs.delete(pair);
        for (const each of pair) each.destroy();
      });
    }
    client.pipe(upstream).pipe(client);
  }
}
