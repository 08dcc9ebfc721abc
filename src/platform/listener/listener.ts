/** One port for browsers and gRPC clients: HTTP/1.1 and HTTP/2, by ALPN with TLS, by prior knowledge without it (RFC 9113 section 3.3). */
import { type AddressInfo, createServer, type ListenOptions, type Server, type Socket } from "node:net";
import { turns } from "../clock/turns.ts";
import { Connections, type Refusal } from "./connections.ts";
import { detectProtocol } from "./detect-protocol.ts";
import type { Handler, HttpRequest, HttpResponse } from "./handler.ts";
import { createHttp1 } from "./http1.ts";
import { createHttp2 } from "./http2.ts";
import { connectTo, LateConnections } from "./late-connections.ts";
import { DEFAULT_LIMITS, type ListenerLimits } from "./limits.ts";
import { createSecureSide, type Tls } from "./secure.ts";

export { type Handler, type HttpRequest, type HttpResponse, respond, type WritableResponse } from "./handler.ts";
export type { Tls } from "./secure.ts";

export type Listener = {
  /** The URL, such as `http://127.0.0.1:8080`. */
  readonly url: string;
  readonly port: number;
  readonly scheme: "http" | "https";
  connections(): number;
  readonly maxConnections: number;
  /** Serves connections from now on, including those that were opened earlier. */
  serve(handler: Handler): void;
  /** Uses another certificate for connections from now on. @throws Error if the certificate and its key do not belong together */
  replaceTls(tls: Tls): void;
  /**
   * Accepts no more connections, asks the clients to close the open ones, and resolves when all are closed. Idle connections stay open for
   * `lingerMs`, so that a request that is just being sent is served. After `graceMs` all connections are closed. A further call can only
   * shorten `lingerMs`.
   */
  close(graceMs: number, lingerMs?: number): Promise<void>;
};

type ListenerOptions = {
  readonly tls?: Tls | undefined;
  readonly limits?: Partial<ListenerLimits>;
  /** How the caller calls the settings of the host and the port, for the message of a failure. Default: no name is given. */
  readonly settings?: { readonly host: string; readonly port: string } | undefined;
  /** Whether other processes listen on the same port (SO_REUSEPORT). The system distributes the connections. */
  readonly sharesPort?: boolean;
  /** Receives the errors that handlers throw. The response to such a request is aborted. */
  readonly onBug?: (error: unknown) => void;
  readonly onRefused?: (reason: Refusal) => void;
};

/** @throws Error that names listener, host and port if the port cannot be bound */
export async function openListener(
  name: string,
  host: string,
  port: number,
  options: ListenerOptions = {},
): Promise<Listener> {
  const { tls, limits: givenLimits, onBug = () => {}, onRefused = () => {}, sharesPort = false, settings } = options;
  const limits = { ...DEFAULT_LIMITS, ...givenLimits };
  const connections = new Connections(limits);
  let handler: Handler | undefined;
  let waiting: { readonly socket: Socket; readonly sinceMs: number }[] = [];
  const handle = (request: HttpRequest, response: HttpResponse) => {
    if (late.waited.size > 0) late.take(request);
    try {
      handler?.(request, response);
    } catch (error) {
      onBug(error);
      response.destroy();
    }
  };
  const protocols = createProtocols(limits, tls, { handle, onRefused });

  const server = createServer({ noDelay: true }, (socket) => {
    const refusal = connections.admit(socket);
    if (refusal !== undefined) {
      socket.on("error", () => {}).resetAndDestroy();
      return onRefused(refusal);
    }
    socket.on("error", () => socket.destroy());
    late.accept(socket);
    if (handler === undefined) waiting.push({ socket, sinceMs: turns.readUntilMs });
    else protocols.accept(socket);
  });
  const late = new LateConnections({ maxWaitMs: limits.maxWaitMs, connectSelf: connectTo(server, sharesPort) });
  const address = await listen(server, { host, port, reusePort: sharesPort }).catch((error: NodeJS.ErrnoException) => {
    throw cannotListen(name, host, port, error, settings);
  });
  const scheme = tls === undefined ? "http" : "https";
  const shownHost = host.includes(":") ? `[${host}]` : host;

  let closed: Promise<void> | undefined;
  return {
    url: `${scheme}://${shownHost}:${address.port}`,
    port: address.port,
    scheme,
    connections: () => connections.count,
    maxConnections: limits.maxConnections,
    serve(given) {
      handler = given;
      for (const { socket, sinceMs } of waiting) {
        late.note(socket, sinceMs);
        protocols.accept(socket);
      }
      waiting = [];
    },
    replaceTls: protocols.replaceTls,
    close(graceMs, lingerMs = 0) {
      closed ??= drain({ server, connections, protocols }, graceMs, lingerMs);
      if (lingerMs === 0) protocols.closeIdle();
      return closed;
    },
  };
}

type Open = {
  readonly server: Server;
  readonly connections: Connections;
  readonly protocols: ReturnType<typeof createProtocols>;
};

function drain({ server, connections, protocols }: Open, graceMs: number, lingerMs: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const cut = setTimeout(() => connections.destroyAll(), graceMs);
  const endLinger = setTimeout(protocols.closeIdle, Math.min(lingerMs, graceMs));
  protocols.drain();
  server.close(() => {
    clearTimeout(cut);
    clearTimeout(endLinger);
    protocols.close();
    resolve();
  });
  return promise;
}

function createProtocols(
  limits: ListenerLimits,
  tls: Tls | undefined,
  { handle, onRefused }: { readonly handle: Handler; readonly onRefused: (reason: Refusal) => void },
) {
  const http1 = createHttp1(limits, handle);
  const http2 = createHttp2(limits, handle, onRefused);
  const take = (version: "http1" | "http2", socket: Socket) => (version === "http1" ? http1 : http2).take(socket);
  const secure = tls && createSecureSide(tls, limits.headTimeoutMs, take);
  const detector = detectProtocol(limits.headTimeoutMs, take);
  return {
    accept: (socket: Socket) => (secure === undefined ? detector.detect(socket) : secure.take(socket)),
    replaceTls: (next: Tls) => secure?.replace(next),
    drain() {
      http1.drain();
      http2.drain();
    },
    closeIdle() {
      detector.closeSilent();
      http1.closeIdle();
      http2.closeIdle();
    },
    close() {
      http1.close();
      http2.close();
    },
  };
}

function listen(server: Server, options: ListenOptions): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(options, () => resolve(server.address() as AddressInfo));
  });
}

function cannotListen(
  name: string,
  host: string,
  port: number,
  error: NodeJS.ErrnoException,
  settings: ListenerOptions["settings"],
): Error {
  const ofPort = { EADDRINUSE: "the port is taken", EACCES: "no permission" }[error.code ?? ""];
  const setting = settings?.[ofPort === undefined ? "host" : "port"];
  const place = `cannot open the ${name} listener on ${host}:${port}: ${ofPort ?? error.message}`;
  return new Error(setting === undefined ? place : `${setting}: ${place}`, { cause: error });
}
