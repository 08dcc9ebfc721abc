/**
 * The open connections of a listener, by network address. If the listener is full, a new connection replaces the oldest one of the address
 * with the most connections, provided that this address has more than twice as many as the address of the new connection.
 */
import type { Socket } from "node:net";
import { subnetOf } from "../net/subnet.ts";

/**
 * Why a connection is refused. `full`: the listener has too many connections. `address`: the client's address has too many. `requests`: the
 * address has made too many HTTP/2 requests without an authentic credential.
 */
export type Refusal = "full" | "address" | "requests";

type Limits = { readonly maxConnections: number; readonly maxConnectionsPerAddress: number };
type Holding = { readonly network: string; readonly sockets: Set<Socket> };

export class Connections {
  readonly #limits: Limits;
  readonly #holdings = new Map<string, Holding>();
  #count = 0;
  /** The address that had the most connections when the addresses were last compared, and how many it had then. */
  #largest: { readonly holding: Holding; readonly size: number } | undefined;

  constructor(limits: Limits) {
    this.#limits = limits;
  }

  /** Counts a connection until it closes, or returns why it is refused. */
  admit(socket: Socket): Refusal | undefined {
    const network = subnetOf(socket.remoteAddress ?? "");
    const holding = this.#holdings.get(network) ?? { network, sockets: new Set() };
    if (holding.sockets.size >= this.#limits.maxConnectionsPerAddress) return "address";
    if (this.#count >= this.#limits.maxConnections && !this.#makePlace(holding.sockets.size + 1)) return "full";
    this.#count++;
    this.#holdings.set(network, holding);
    holding.sockets.add(socket);
    socket.once("close", () => this.#release(holding, socket));
    return undefined;
  }

  get count(): number {
    return this.#count;
  }

  destroyAll(): void {
    for (const { sockets } of this.#holdings.values()) for (const socket of sockets) socket.destroy();
  }

  #release({ network, sockets }: Holding, socket: Socket): void {
    if (!sockets.delete(socket)) return;
    this.#count--;
    if (sockets.size === 0) this.#holdings.delete(network);
  }

  #makePlace(share: number): boolean {
    // The address with the most connections is searched again only after half of the connections of the one found before have closed.
    // Otherwise a flood from many addresses would cost a search for each connection.
    if (this.#largest === undefined || this.#largest.holding.sockets.size * 2 <= this.#largest.size)
      this.#findLargest();
    const holding = this.#largest?.holding;
    if (holding === undefined || holding.sockets.size <= share * 2) return false;
    for (const oldest of holding.sockets) {
      this.#release(holding, oldest);
      oldest.destroy();
      return true;
    }
    return false;
  }

  #findLargest(): void {
    let largest: Holding | undefined;
    for (const one of this.#holdings.values()) if (one.sockets.size > (largest?.sockets.size ?? 0)) largest = one;
    this.#largest = largest && { holding: largest, size: largest.sockets.size };
  }
}
