/**
 * Finds requests that waited for a long time before this process could accept their connection, because it did not run.
 *
 * Without TLS these are the requests that are read in the first poll after the connection was accepted. With TLS a request comes some
 * round trips later. There the first request of a connection counts if the connection had waited for too long and the request comes soon.
 *
 * The event loop does not report how many connections wait, but accepts them in order. So after a stall this process connects to itself:
 * when its own connection is accepted, all connections that waited before it have been accepted as well.
 */
import { connect, type Server, type Socket } from "node:net";
import { type Turns, turns as turnsOfProcess } from "../clock/turns.ts";
import { type HttpRequest, WAITED_MS } from "./handler.ts";

/** A connection counts as not delayed if it waited for less than this fraction of the allowed time. */
const PROMPT_PART = 1 / 4;

/**
 * Connects to a listener, which accepts this connection like any other.
 *
 * @param onConnected receives the connection's address and port as the listener sees them, possibly after it was accepted
 * @param onEnd called when the connection has ended or could not be made
 * @returns a function that ends the connection
 */
type ConnectSelf = (onConnected: (client: string) => void, onEnd: () => void) => () => void;

/** @param sharesPort whether a connection may reach another process. Then it is made again until one reaches this process. */
export function connectTo(server: Pick<Server, "address">, sharesPort = false): ConnectSelf {
  return (onConnected, onEnd) => {
    const address = server.address();
    if (address === null || typeof address === "string") {
      // The listener was closed while connections of a stall were still reported. It accepts no others, so there is nothing to find out.
      onEnd();
      return () => {};
    }
    let isWanted = true;
    let own: Socket;
    const begin = (attemptsLeft: number) => {
      own = connect(address.port, address.address).resume().unref();
      own.once("connect", () => onConnected(clientOf({ remoteAddress: own.localAddress, remotePort: own.localPort })));
      own
        .on("error", () => {})
        .once("close", () => {
          if (isWanted && attemptsLeft > 0) begin(attemptsLeft - 1);
          else onEnd();
        });
      // Another process on this port may have accepted the connection. These bytes belong to no protocol, so that process closes it.
      if (sharesPort) own.write(NO_PROTOCOL);
    };
    begin(sharesPort ? MAX_ATTEMPTS : 0);
    return () => {
      isWanted = false;
      own.destroy();
    };
  };
}

/** How often a process that shares its port may connect until it reaches itself. The system chooses the process at random. */
const MAX_ATTEMPTS = 1_000;
/** Bytes with which no request line and no TLS record begins, so that another process closes the connection. */
const NO_PROTOCOL = Buffer.from("\0\r\n\r\n");

type Waited = {
  readonly sinceMs: number;
  /** A request that is read after this time counts as sent later, not as one that waited together with its connection. */
  untilMs: number;
};

/** A stall of this process. Until it accepts its connection to itself, each accepted connection may have waited since `sinceMs`. */
type Stall = {
  readonly sinceMs: number;
  readonly accepted: Set<string>;
  /** When this process connected to itself, and from which address and port, once they are known. */
  readonly ownAtMs: number;
  own: string | undefined;
};

type Deps = {
  /** How long a request may wait, in ms. */
  readonly maxWaitMs: number;
  readonly connectSelf: ConnectSelf;
  readonly turns?: Turns;
  /** Calls `then` once after the next poll of the event loop. */
  readonly afterPoll?: (then: () => void) => void;
};

export class LateConnections {
  readonly #deps: Required<Deps>;
  #stall: Stall | undefined;
  #endOwn = () => {};
  /** The connections whose first request may be old, by the client's address and port. */
  readonly waited = new Map<string, Waited>();

  constructor(deps: Deps) {
    this.#deps = { turns: turnsOfProcess, afterPoll: setImmediate, ...deps };
  }

  accept(socket: Socket): void {
    const stall = this.#stall ?? this.#begin(this.#deps.turns.readUntilMs);
    if (stall === undefined) return;
    stall.accepted.add(clientOf(socket));
    this.note(socket, stall.sinceMs);
    this.#look(stall);
  }

  /** Records a stall if connections that are accepted from now on may have waited for long. Returns undefined otherwise. */
  #begin(sinceMs: number): Stall | undefined {
    const { turns, maxWaitMs, connectSelf } = this.#deps;
    const behindMs = turns.behindMs(sinceMs);
    this.#stall = undefined;
    if (behindMs <= maxWaitMs * PROMPT_PART) return undefined;
    const stall: Stall = { sinceMs, accepted: new Set(), ownAtMs: sinceMs + behindMs, own: undefined };
    this.#stall = stall;
    this.#endOwn = connectSelf(
      (own) => {
        stall.own = own;
        this.#look(stall);
      },
      () => {
        if (this.#stall === stall) this.#stall = undefined;
      },
    );
    return stall;
  }

  /** Ends a stall once all connections that waited during it have been accepted. */
  #look(stall: Stall): void {
    if (stall !== this.#stall || stall.own === undefined || !stall.accepted.has(stall.own)) return;
    this.#endOwn();
    // Connections that are accepted from now on were made after this process had connected to itself. If it did not run for long since
    // that time, they may have waited as well.
    this.#begin(stall.ownAtMs);
  }

  /** Records a connection whose first bytes have not been read. @param sinceMs since when it may have waited, by the event loop's clock */
  note(socket: Socket, sinceMs: number): void {
    const { turns, maxWaitMs, afterPoll } = this.#deps;
    const client = clientOf(socket);
    const waited = { sinceMs, untilMs: Number.POSITIVE_INFINITY };
    this.waited.set(client, waited);
    socket.once("close", () => this.waited.delete(client));
    const waitedMs = turns.behindMs(sinceMs);
    // The event loop reads the bytes that arrived with a connection in the poll after the one that accepted it.
    afterPoll(() =>
      afterPoll(() => {
        if (waitedMs > maxWaitMs) waited.untilMs = sinceMs + waitedMs + maxWaitMs;
        else this.waited.delete(client);
      }),
    );
  }

  take(request: HttpRequest): void {
    const client = clientOf(request.socket);
    const waited = this.waited.get(client);
    if (waited === undefined) return;
    const { turns, afterPoll } = this.#deps;
    const { sinceMs, untilMs } = waited;
    if (turns.behindMs(untilMs) <= 0) request[WAITED_MS] = turns.behindMs(sinceMs);
    // Later requests did not wait with the connection, except for HTTP/2 streams that are read in the same poll.
    const forget = () => this.waited.delete(client);
    if ("stream" in request) afterPoll(forget);
    else forget();
  }
}

function clientOf({ remoteAddress, remotePort }: Pick<Socket, "remoteAddress" | "remotePort">): string {
  return `${remoteAddress} ${remotePort}`;
}
