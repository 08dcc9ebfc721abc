/** One connection of a client. It handles the errors of the connection from before it opens until after it is closed. */
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  type ClientSessionRequestOptions,
  connect,
  constants,
  type OutgoingHttpHeaders,
  type SecureClientSessionOptions,
} from "node:http2";
import { Code, ConnectError } from "@connectrpc/connect";
import { patientTimeout } from "../clock/after-reading.ts";
import type { KeepAlive } from "./keep-alive.ts";

/** The text that a server sends with GOAWAY to clients whose PINGs come too often (gRPC proposal A8). */
const TOO_MANY_PINGS = Buffer.from("too_many_pings");
/**
 * How many streams of a connection may be reset: a server ends the connection of a client that resets many, with the calls of others on it
 * (Netty after 200 within 30 s, Envoy if they are half of 500, nghttp2 and thus Node after 1,000). Open streams count, because all of them
 * may be cancelled at once.
 */
export const MAX_RESETS = 200;
/** The shortest delay before a check, in milliseconds. Otherwise a timer that fires slightly too early would cause many checks. */
const MIN_DELAY_MS = 1;

type Deps = {
  readonly authority: string;
  readonly nodeOptions: SecureClientSessionOptions | undefined;
  readonly keepAlive: KeepAlive;
  /** How long the connection may take to open, in milliseconds. */
  readonly openTimeoutMs: number;
  readonly onTooManyPings: () => void;
  readonly onClose: () => void;
};

export class ClientConnection {
  /** Resolves when the connection is open; rejects if it cannot be opened. */
  readonly opened: Promise<void>;
  readonly #session: ClientHttp2Session;
  readonly #keepAlive: KeepAlive;
  #streams = 0;
  /** The requests that wait until the connection is open, or until it is found alive. */
  #waiting = 0;
  /** The streams that were reset, by either side. */
  #resets = 0;
  #isOpen = false;
  #isLeaving = false;
  #aliveAtMs = performance.now();
  /** The PING that is waiting for its acknowledgement, and the function that cancels its timeout. */
  #ping: (PromiseWithResolvers<boolean> & { readonly cancelTimeout: () => void }) | undefined;
  #stopWatch = () => {};
  #stopIdleTimer = () => {};

  /** @throws Error if the options of TLS are invalid */
  constructor({ authority, nodeOptions, keepAlive, openTimeoutMs, onTooManyPings, onClose }: Deps) {
    this.#keepAlive = keepAlive;
    // A pushed stream that fails would end the process.
    this.#session = connect(authority, { ...nodeOptions, settings: { ...nodeOptions?.settings, enablePush: false } });
    this.opened = this.#open(openTimeoutMs);
    this.opened.catch(() => {}); // Requests that wait for the connection report this error.
    this.#session.on("goaway", (_code: number, _last: number, data?: Buffer) => {
      if (data?.equals(TOO_MANY_PINGS)) onTooManyPings();
      this.leave();
    });
    const end = () => {
      this.#stopWatch();
      this.#stopIdleTimer();
      // Node does not report the end of a PING whose connection is closed.
      this.#endPing(false);
      onClose();
    };
    this.#session.once("close", end);
    // Node destroys a session whose server demands another certificate, but emits neither `error` nor `close`.
    this.#session.socket.once("error", end);
  }

  /** Returns whether streams can be opened once the connection is open. */
  get isUsable(): boolean {
    return !this.#isLeaving && !this.#session.closed && !this.#session.destroyed;
  }

  /** Returns whether a further request should be for this connection: it is usable, and if all streams are reset, they are few enough. */
  get hasRoom(): boolean {
    return this.isUsable && this.#streams + this.#waiting + this.#resets < MAX_RESETS;
  }

  /** Returns whether the connection is open and accepts streams. */
  get isOpen(): boolean {
    return this.#isOpen && this.isUsable;
  }

  get streams(): number {
    return this.#streams;
  }

  /** Returns whether as many streams are open as the server allows; a further one would have to wait. */
  get isFull(): boolean {
    return this.#streams >= (this.#session.remoteSettings.maxConcurrentStreams ?? Number.POSITIVE_INFINITY);
  }

  /** Returns whether a stream can be opened without a PING first. */
  get isFresh(): boolean {
    return this.#isOpen && this.isUsable && this.#silentMs() <= this.#keepAlive.pingIntervalMs;
  }

  owns(stream: ClientHttp2Stream): boolean {
    return stream.session === this.#session;
  }

  request(headers: OutgoingHttpHeaders, options: ClientSessionRequestOptions): ClientHttp2Stream {
    const stream = this.#session.request(headers, options);
    // The caller adds its own error listener one turn later, and the stream may fail before that.
    stream.on("error", ignoreError);
    if (++this.#streams === 1) this.#becomeBusy();
    stream.on("response", this.noteBytes);
    stream.on("close", () => this.#noteEnd(stream.rstCode));
    return stream;
  }

  /** Records that the server has sent bytes. */
  readonly noteBytes = (): void => {
    this.#aliveAtMs = performance.now();
  };

  #noteEnd(resetCode: number): void {
    // The other half of the limit is for the streams that are open when the connection is left.
    if (resetCode !== constants.NGHTTP2_NO_ERROR && ++this.#resets >= MAX_RESETS / 2) this.#isLeaving = true;
    if (--this.#streams === 0) this.#becomeIdle();
  }

  /**
   * Waits until the connection is open, and checks it with a PING if it was silent for long. Resolves with whether it can be used.
   * @throws Error if the connection cannot be opened
   */
  async verify(): Promise<boolean> {
    this.#waiting++;
    try {
      await this.opened;
      if (!this.isUsable || this.isFresh) return this.isUsable;
      this.#session.ref();
      const isAlive = await this.#sendPing();
      if (this.#streams === 0) this.#session.unref();
      return isAlive && this.isUsable;
    } finally {
      this.#waiting--;
    }
  }

  /** Takes no more requests. The connection ends after its last stream. */
  leave(): void {
    this.#isLeaving = true;
    if (this.#isOpen && this.#streams === 0) this.#session.close();
  }

  /** Ends the connection and its streams with an error. */
  destroy(reason: Error): void {
    this.#session.destroy(reason, constants.NGHTTP2_CANCEL);
  }

  #open(timeoutMs: number): Promise<void> {
    const session = this.#session;
    return new Promise((resolve, reject) => {
      const giveUp = () => this.destroy(new ConnectError("the connection does not open", Code.Unavailable));
      const cancelTimeout = patientTimeout(giveUp, timeoutMs);
      const fail = (error: Error) => {
        cancelTimeout();
        reject(error);
      };
      // A server that refuses a connection may close it after it has accepted it, but sends no settings then.
      session.once("remoteSettings", () => {
        cancelTimeout();
        this.#isOpen = true;
        this.noteBytes();
        if (this.#streams === 0) this.#becomeIdle();
        resolve();
      });
      // The listener for errors is never removed: an error may occur at any time, even after the connection has been given up.
      session.on("error", fail);
      session.socket.once("error", fail);
      session.once("close", () => fail(new ConnectError("the connection was closed", Code.Unavailable)));
    });
  }

  #becomeBusy(): void {
    this.#stopIdleTimer();
    this.#session.ref();
    this.#watch();
  }

  #becomeIdle(): void {
    if (this.#session.destroyed) return;
    if (this.#isLeaving) return void this.#session.close();
    // The process may end if no request is waiting for the server.
    this.#session.unref();
    this.#stopIdleTimer = patientTimeout(() => this.#session.close(), this.#keepAlive.idleConnectionTimeoutMs);
    this.#watch();
  }

  /** Sends a PING whenever the connection has been silent for `pingIntervalMs`. */
  #watch(): void {
    this.#stopWatch();
    const { pingIntervalMs, pingIdleConnection } = this.#keepAlive;
    if (this.#session.destroyed || (this.#streams === 0 && !pingIdleConnection)) return;
    const onSilence = async () => {
      if (this.#silentMs() >= pingIntervalMs) await this.#sendPing();
      this.#watch();
    };
    this.#stopWatch = patientTimeout(onSilence, Math.max(pingIntervalMs - this.#silentMs(), MIN_DELAY_MS));
  }

  #silentMs(): number {
    return performance.now() - this.#aliveAtMs;
  }

  /** Sends a PING. Resolves with whether the server has acknowledged it. Destroys the connection if the server does not do so in time. */
  #sendPing(): Promise<boolean> {
    if (this.#session.destroyed) return Promise.resolve(false);
    if (this.#ping === undefined) {
      const giveUp = () => this.destroy(new ConnectError("PING timed out", Code.Unavailable));
      this.#ping = { ...Promise.withResolvers(), cancelTimeout: patientTimeout(giveUp, this.#keepAlive.pingTimeoutMs) };
      this.#session.ping((error) => this.#endPing(error === null));
    }
    return this.#ping.promise;
  }

  #endPing(isAlive: boolean): void {
    if (isAlive) this.noteBytes();
    this.#ping?.cancelTimeout();
    this.#ping?.resolve(isAlive);
    this.#ping = undefined;
  }
}

function ignoreError(): void {}
