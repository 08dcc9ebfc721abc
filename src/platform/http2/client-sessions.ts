/**
 * The connections of a client to one server: the `sessionManager` of connect-node's transports. Every connection keeps its listeners as
 * long as it exists, so that a network failure becomes an error of the affected requests. (connect-node's `Http2SessionManager` stops
 * listening to a connection that it replaces. A later error of it, such as a PING that times out, ends the process.)
 */
import type {
  ClientHttp2Stream,
  ClientSessionRequestOptions,
  OutgoingHttpHeaders,
  SecureClientSessionOptions,
} from "node:http2";
import { Code, ConnectError } from "@connectrpc/connect";
import { ClientConnection } from "./client-connection.ts";
import type { KeepAlive, KeepAliveOptions } from "./keep-alive.ts";

export type { KeepAliveOptions } from "./keep-alive.ts";

/** How many connections are tried for a request if each of them ends before the request can be sent. */
const MAX_CONNECTIONS = 3;
/** How long a further connection may take to open while others are open, in milliseconds. */
const FURTHER_OPEN_MS = 1_000;
/** The pause before a further connection is tried again after one has failed, in milliseconds. */
const REST_MS = 1_000;

export class ClientSessions {
  readonly authority: string;
  /** The authority in the requests. That of Node lacks the brackets of an IPv6 address, and servers refuse it. */
  readonly #host: string;
  #nodeOptions: SecureClientSessionOptions | undefined;
  readonly #connections = new Set<ClientConnection>();
  #keepAlive: KeepAlive;
  #current: ClientConnection | undefined;
  #restsUntilMs = 0;
  #closed: Error | undefined;

  /** @param nodeOptions options of `http2.connect`: certificates and authorities */
  constructor(url: string, options: KeepAliveOptions = {}, nodeOptions?: SecureClientSessionOptions) {
    this.authority = new URL(url).origin;
    this.#host = new URL(url).host;
    this.#nodeOptions = nodeOptions;
    this.#keepAlive = {
      pingIntervalMs: options.pingIntervalMs ?? Number.POSITIVE_INFINITY,
      pingTimeoutMs: options.pingTimeoutMs ?? 15_000,
      pingIdleConnection: options.pingIdleConnection ?? false,
      idleConnectionTimeoutMs: options.idleConnectionTimeoutMs ?? 15 * 60_000,
    };
  }

  /** Returns whether a connection is open. */
  get isOpen(): boolean {
    return this.#firstThat(({ isOpen }) => isOpen) !== undefined;
  }

  /** The number of streams on the connection for the next request. */
  get streams(): number {
    return this.#current?.streams ?? 0;
  }

  /** Returns whether the connection for the next request has as many streams as the server allows. */
  get isFull(): boolean {
    return this.#current?.isFull === true;
  }

  /** Opens a connection if there is none. @throws Error if it cannot be opened */
  async connect(): Promise<void> {
    await this.#connect().opened;
  }

  /** Sends the head of a request on a connection that is open and alive. @throws Error if there is none */
  async request(
    method: string,
    path: string,
    headers: OutgoingHttpHeaders,
    options: Omit<ClientSessionRequestOptions, "signal">,
  ): Promise<ClientHttp2Stream> {
    // Behind one address there may be several servers, of which an interceptor names one by `host`, as Node allows.
    const authority = headers.host === undefined ? { ":authority": this.#host } : {};
    for (let count = 0; count < MAX_CONNECTIONS; count++) {
      const connection = this.#connect();
      try {
        if (!connection.isFresh && !(await connection.verify())) continue;
      } catch (error) {
        if (!this.isOpen) throw error;
        this.#restsUntilMs = performance.now() + REST_MS;
        continue;
      }
      try {
        return connection.request({ ...authority, ...headers, ":method": method, ":path": path }, options);
      } catch (error) {
        // Either the connection has ended between the two calls, or the request is wrong.
        if (connection.isUsable) throw error;
      }
    }
    throw new ConnectError("the connection was closed", Code.Unavailable);
  }

  /** Opens connections with other options from now on. An open one takes no more requests, and ends after its last stream. */
  renew(nodeOptions: SecureClientSessionOptions): void {
    this.#nodeOptions = { ...this.#nodeOptions, ...nodeOptions };
    for (const connection of this.#connections) connection.leave();
  }

  /** Records that bytes of a response have been read. */
  notifyResponseByteRead(stream: ClientHttp2Stream): void {
    for (const connection of this.#connections) if (connection.owns(stream)) connection.noteBytes();
  }

  /**
   * Opens another connection for later requests if those that are open have been silent for `pingIntervalMs`. It is for a caller that has
   * given up waiting: a connection may be dead, and its PING takes longer.
   */
  leaveSilent(): void {
    for (const connection of this.#connections) if (connection.isOpen && !connection.isFresh) connection.leave();
  }

  /** Ends all connections. Their calls fail, and so do all later calls. */
  close(): void {
    this.#closed ??= new ConnectError("the connection was closed by this client", Code.Canceled);
    for (const connection of this.#connections) connection.destroy(this.#closed);
  }

  /** Returns the connection for the next request. Connections that are left stay open until their streams have ended. */
  #connect(): ClientConnection {
    if (this.#closed !== undefined) throw this.#closed;
    if (!this.#current?.hasRoom) this.#current = this.#firstThat(({ hasRoom }) => hasRoom) ?? this.#openFurther();
    return this.#current;
  }

  /** Opens a connection. If a further one has just failed, which a server may refuse, one that is open has to do. */
  #openFurther(): ClientConnection {
    const open = this.#firstThat(({ isOpen }) => isOpen);
    if (open === undefined) return this.#open(this.#keepAlive.pingTimeoutMs);
    return performance.now() < this.#restsUntilMs ? open : this.#open(FURTHER_OPEN_MS);
  }

  #firstThat(fits: (connection: ClientConnection) => boolean): ClientConnection | undefined {
    for (const connection of this.#connections) if (fits(connection)) return connection;
    return undefined;
  }

  #open(openTimeoutMs: number): ClientConnection {
    const connection: ClientConnection = new ClientConnection({
      authority: this.authority,
      nodeOptions: this.#nodeOptions,
      keepAlive: this.#keepAlive,
      openTimeoutMs,
      onTooManyPings: () => {
        this.#keepAlive = { ...this.#keepAlive, pingIntervalMs: this.#keepAlive.pingIntervalMs * 2 };
      },
      onClose: () => this.#connections.delete(connection),
    });
    this.#connections.add(connection);
    return connection;
  }
}
