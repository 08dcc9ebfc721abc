/**
 * The connections of a client to one service at several addresses: the `sessionManager` of connect-node's transports. Behind a load
 * balancer for connections, a single connection would send all calls to one server. A pool distributes them, and works while a server is
 * down.
 */
import { lookup } from "node:dns";
import type { ClientHttp2Stream, SecureClientSessionOptions } from "node:http2";
import type { LookupFunction } from "node:net";
import { ClientSessions, type KeepAliveOptions } from "./client-sessions.ts";

interface PoolOptions extends KeepAliveOptions {
  /** How many connections each URL gets. */
  readonly connections: number;
  /** Receives the error of each connection that could not be opened. */
  readonly onFailure: (authority: string, error: unknown) => void;
}

/**
 * The pause before another attempt to connect to a server that failed, in milliseconds, while connections to others are open. It doubles
 * with each failure.
 */
const MIN_REST_MS = 1_000;
const MAX_REST_MS = 30_000;

export class SessionPool {
  /** The origin of the first server. */
  readonly authority: string;
  readonly #members: readonly Member[];
  #turn = 0;

  /** @param nodeOptions options of `http2.connect`: certificates and authorities */
  constructor([first, ...others]: readonly [string, ...string[]], options: PoolOptions, nodeOptions?: NodeOptions) {
    this.authority = new URL(first).origin;
    // The connections are listed with alternating URLs, so that the first connections go to different servers.
    this.#members = Array.from({ length: options.connections }, (_, index) =>
      [first, ...others].map((url) => new Member(url, index, options, nodeOptions)),
    ).flat();
  }

  /** Returns whether a request would have to wait for another: each open connection has as many streams as its server allows. */
  get isFull(): boolean {
    const open = this.#members.filter(({ sessions }) => sessions.isOpen);
    return open.length > 0 && open.every(({ sessions }) => sessions.isFull);
  }

  /** Sends the head of a request on the open connection with the fewest streams that is not full. @throws Error if none can be opened */
  async request(...given: Parameters<ClientSessions["request"]>): Promise<ClientHttp2Stream> {
    let left = this.#members;
    for (;;) {
      const choice = this.#choose(left);
      const member = choice instanceof Member ? choice : await choice;
      try {
        return await member.sessions.request(...given);
      } catch (error) {
        // Nothing has been sent, so another server may get the request.
        left = left.filter((other) => other !== member);
        if (left.length === 0) throw error;
      }
    }
  }

  /** Opens connections with other options from now on: certificates and authorities. Open ones finish their requests. */
  renew(nodeOptions: NodeOptions): void {
    for (const { sessions } of this.#members) sessions.renew(nodeOptions);
  }

  /** Records that bytes of a response have been read. */
  notifyResponseByteRead(stream: ClientHttp2Stream): void {
    for (const { sessions } of this.#members) sessions.notifyResponseByteRead(stream);
  }

  /** Ends all connections. Their calls fail, and so do all later calls. */
  close(): void {
    for (const { sessions } of this.#members) sessions.close();
  }

  /**
   * Returns the open connection with the fewest streams, and a full one only if all are full. If none is open, it resolves with the first
   * that opens. It also opens the connections that are closed.
   */
  #choose(candidates: readonly Member[]): Member | Promise<Member> {
    const offset = this.#turn++ % candidates.length;
    let least: Member | undefined;
    for (let i = 0; i < candidates.length; i++) {
      const member = candidates[(offset + i) % candidates.length] as Member;
      if (!member.sessions.isOpen) member.warm();
      else if (least === undefined || hasMoreRoom(member.sessions, least.sessions)) least = member;
    }
    return least ?? firstOf(candidates.map((member) => member.connect().then(() => member)));
  }
}

type NodeOptions = SecureClientSessionOptions;

class Member {
  readonly sessions: ClientSessions;
  readonly #onFailure: PoolOptions["onFailure"];
  #opening: Promise<void> | undefined;
  #failures = 0;
  #restsUntilMs = 0;

  constructor(url: string, index: number, options: PoolOptions, nodeOptions: NodeOptions | undefined) {
    this.sessions = new ClientSessions(url, options, { ...nodeOptions, lookup: lookupFrom(index) } as NodeOptions);
    this.#onFailure = options.onFailure;
  }

  /** Opens the connection in the background, unless it has failed recently. */
  warm(): void {
    if (performance.now() >= this.#restsUntilMs) this.connect().catch(() => {});
  }

  connect(): Promise<void> {
    this.#opening ??= this.#open();
    return this.#opening;
  }

  async #open(): Promise<void> {
    try {
      await this.sessions.connect();
      this.#failures = 0;
    } catch (error) {
      this.#restsUntilMs = performance.now() + Math.min(MAX_REST_MS, MIN_REST_MS * 2 ** this.#failures++);
      this.#onFailure(this.sessions.authority, error);
      throw error;
    } finally {
      this.#opening = undefined;
    }
  }
}

function hasMoreRoom(one: ClientSessions, other: ClientSessions): boolean {
  return one.isFull === other.isFull ? one.streams < other.streams : other.isFull;
}

/** Resolves with the first value; rejects with the first error if there is no value. */
async function firstOf<T>(promises: readonly Promise<T>[]): Promise<T> {
  try {
    return await Promise.any(promises);
  } catch (error) {
    throw error instanceof AggregateError ? error.errors[0] : error;
  }
}

/**
 * Returns a function that resolves names. For a name with several addresses, such as that of a service in Kubernetes, each connection
 * begins at a different one.
 */
function lookupFrom(index: number): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, found) => {
      const at = found === undefined || found.length === 0 ? 0 : index % found.length;
      const addresses = error ? [] : [...found.slice(at), ...found.slice(0, at)];
      const [first] = addresses;
      if (error || options.all) callback(error, addresses);
      else callback(null, first?.address ?? "", first?.family);
    });
  };
}
