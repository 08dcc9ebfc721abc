/**
 * Connections that waited to be accepted while this process did not run, and the requests that came along with them: those are as
 * old, although nothing of them could be read before.
 *
 * Without TLS that is what is read in the first poll after the connection was accepted. With TLS it comes some round trips later:
 * so there a first request counts if its connection had waited for too long, and it comes soon.
 *
 * The event loop accepts one connection in a poll, and does not say how many wait. But it accepts them in their order: when
 * one of our own comes, which was made after the stall, all that had waited have come.
 */
import { connect, type Server, type Socket } from "node:net";
import { type Turns, turns as turnsOfProcess } from "../clock/turns.ts";
import type { Request } from "./exchange.ts";

/** A connection that waited for a smaller part of what is allowed is as good as one that did not. */
const PROMPT_PART = 1 / 4;

const waits = new WeakMap<Request, number>();

/** How long a request may have waited for its connection to be accepted and then to be read, ms; 0 where that was no long time. */
export function waitOf(request: Request): number {
  return waits.get(request) ?? 0;
}

/**
 * Connects to a listener; what comes of it is accepted like any other connection.
 *
 * @param onConnected takes its address and port, as the listener sees them, maybe after it was accepted
 * @param onEnd it has ended, or never come about
 * @returns how to end it
 */
export type ConnectSelf = (onConnected: (client: string) => void, onEnd: () => void) => () => void;

export function connectTo(server: Server): ConnectSelf {
  return (onConnected, onEnd) => {
    const address = server.address();
    if (address === null || typeof address === "string") throw new TypeError("not a listener of TCP");
    const own = connect(address.port, address.address).resume().unref();
    own.once("connect", () => onConnected(clientOf({ remoteAddress: own.localAddress, remotePort: own.localPort })));
    own.on("error", () => {}).once("close", onEnd);
    return () => own.destroy();
  };
}

type Waited = {
  readonly sinceMs: number;
  /** Until when a request may have been sent together with the connection. */
  untilMs: number;
};

/** Connections are accepted that may have waited since then, ms, until our own comes. */
type Stall = {
  readonly sinceMs: number;
  /** Those that have been accepted. */
  readonly accepted: Set<string>;
  /** When our own was made, and what it is. */
  readonly ownAtMs: number;
  own: string | undefined;
};

type Deps = {
  /** How long a request may wait, ms. */
  readonly maxWaitMs: number;
  readonly connectSelf: ConnectSelf;
  readonly turns?: Turns;
  /** Calls once after the next poll of the event loop. */
  readonly afterPoll?: (then: () => void) => void;
};

export class LateConnections {
  readonly #deps: Required<Deps>;
  /** Undefined while connections that are accepted have not waited for long. */
  #stall: Stall | undefined;
  #endOwn = () => {};
  /** Those whose first request may be old, by address and port of the client. */
  readonly #waited = new Map<string, Waited>();

  constructor(deps: Deps) {
    this.#deps = { turns: turnsOfProcess, afterPoll: setImmediate, ...deps };
  }

  /** Takes note of a connection that has just been accepted. */
  accept(socket: Socket): void {
    const stall = this.#stall ?? this.#begin(this.#deps.turns.readUntilMs);
    if (stall === undefined) return;
    stall.accepted.add(clientOf(socket));
    this.note(socket, stall.sinceMs);
    this.#look(stall);
  }

  /** Whether connections that are accepted from now on may have waited since then for long. */
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

  /** Whether all have been accepted that had waited. */
  #look(stall: Stall): void {
    if (stall !== this.#stall || stall.own === undefined || !stall.accepted.has(stall.own)) return;
    this.#endOwn();
    // What comes now has come after our own, and may have waited since: there may have been another stall.
    this.#begin(stall.ownAtMs);
  }

  /** Takes note of a connection that nobody reads before now. @param sinceMs by the clock of the turns */
  note(socket: Socket, sinceMs: number): void {
    const { turns, maxWaitMs, afterPoll } = this.#deps;
    const client = clientOf(socket);
    const waited = { sinceMs, untilMs: Number.POSITIVE_INFINITY };
    this.#waited.set(client, waited);
    socket.once("close", () => this.#waited.delete(client));
    const waitedMs = turns.behindMs(sinceMs);
    // What came with it is read in the poll after this one.
    afterPoll(() =>
      afterPoll(() => {
        if (waitedMs > maxWaitMs) waited.untilMs = sinceMs + waitedMs + maxWaitMs;
        else this.#waited.delete(client);
      }),
    );
  }

  /** Takes note of a request. */
  take(request: Request): void {
    if (this.#waited.size === 0) return;
    const client = clientOf(request.socket);
    const waited = this.#waited.get(client);
    if (waited === undefined) return;
    const { turns, afterPoll } = this.#deps;
    const { sinceMs, untilMs } = waited;
    if (turns.behindMs(untilMs) <= 0) waits.set(request, turns.behindMs(sinceMs));
    // What comes later was sent later; but streams may have come together, and are read in the same poll.
    const forget = () => this.#waited.delete(client);
    if ("stream" in request) afterPoll(forget);
    else forget();
  }
}

function clientOf({ remoteAddress, remotePort }: Pick<Socket, "remoteAddress" | "remotePort">): string {
  return `${remoteAddress} ${remotePort}`;
}
