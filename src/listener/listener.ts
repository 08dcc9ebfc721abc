/**
 * One port that speaks HTTP/1.1 and HTTP/2: by prior knowledge without TLS (RFC 9113 section 3.3), by
 * ALPN with it. A stock gRPC client and a browser find the same handlers.
 */
import {
  createServer as createHttp1,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  type ServerResponse,
} from "node:http";
import {
  createServer as createHttp2,
  type Http2ServerRequest,
  type Http2ServerResponse,
  type ServerHttp2Session,
} from "node:http2";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { createServer as createTls } from "node:tls";

export type Request = IncomingMessage | Http2ServerRequest;
export type Response = ServerResponse | Http2ServerResponse;
export type Handler = (request: Request, response: Response) => void;

/** What all response types have in common. */
export type Answerable = {
  writeHead(status: number, headers: OutgoingHttpHeaders): unknown;
  end(): unknown;
  end(body: string | Buffer): unknown;
};

/** A whole answer. */
export function answer(response: Answerable, status: number, headers: OutgoingHttpHeaders, body?: string | Buffer) {
  response.writeHead(status, headers);
  if (body === undefined) response.end();
  else response.end(body);
}

export type Tls = { readonly cert: Buffer; readonly key: Buffer };

export type Listener = {
  /** `http://127.0.0.1:8080` */
  readonly url: string;
  readonly port: number;
  readonly scheme: "http" | "https";
  /** Answers connections from now on; those that came before have waited. */
  serve(handler: Handler): void;
  /** Stops accepting, lets what is in flight finish for at most `grace` ms, then cuts. */
  close(grace: number): Promise<void>;
};

export type ListenerOptions = {
  readonly tls?: Tls | undefined;
  /** How long a connection may stay silent before its first byte, and a request head incomplete, ms. */
  readonly headTimeout?: number;
  /** Told of what a handler threw: that request is cut, and the others go on. */
  readonly onBug?: (error: unknown) => void;
};

/** Longer than the idle timeout of the usual load balancers (60 s): they, not we, close first. */
const KEEP_ALIVE_TIMEOUT = 65_000;
/** How much of a request is read for the connection's sake when its answer has been given, bytes. */
const MAX_LEFTOVER = 1024 * 1024;
/** How a connection with prior knowledge begins; no HTTP/1.1 method does. */
const HTTP2_PREFACE = "PRI";

/** Takes a port. @throws an error that names listener, host and port when it cannot be had */
export async function openListener(
  name: string,
  host: string,
  port: number,
  { tls, headTimeout = 10_000, onBug = () => {} }: ListenerOptions = {},
): Promise<Listener> {
  const sockets = new Set<Socket>();
  /** Those that have not said anything yet. */
  const silent = new Set<Socket>();
  const sessions = new Set<ServerHttp2Session>();
  let handler: Handler | undefined;
  let waiting: Socket[] = [];
  const handle = (request: Request, response: Response) => {
    try {
      handler?.(request, response);
    } catch (error) {
      onBug(error);
      response.destroy();
    }
  };

  const http1 = createHttp1(
    { headersTimeout: headTimeout, keepAliveTimeout: KEEP_ALIVE_TIMEOUT, connectionsCheckingInterval: headTimeout / 2 },
    (request, response) => {
      if (mayComeLate(request)) outlive(request, response);
      handle(request, response);
    },
  );
  // It never listens itself: without this it would keep no list of its connections, enforce no timeout of
  // theirs and find none of them idle.
  http1.emit("listening");
  const http2 = createHttp2((request, response) => {
    // An answer may be whole before its request is. Nobody reads the rest, so the stream would never close (and
    // ending it with RST_STREAM, as RFC 9113 section 8.1 allows, loses trailers in Node): let it run out.
    const { stream } = response;
    stream.once("finish", () => stream.removeAllListeners("data").resume());
    handle(request, response);
  });
  http2.on("session", (session) => {
    sessions.add(session);
    session.once("close", () => sessions.delete(session));
    // First a farewell that lets streams finish (it counts as activity); then, for a dead peer, the end.
    session.setTimeout(KEEP_ALIVE_TIMEOUT, () => (session.closed ? session.destroy() : session.close()));
  });
  // A peer that breaks the protocol or leaves is its own affair; Node has closed its connection.
  http2.on("sessionError", () => {});

  const secure =
    tls &&
    createTls(
      { ...tls, ALPNProtocols: ["h2", "http/1.1"], minVersion: "TLSv1.2", handshakeTimeout: headTimeout },
      (socket) => {
        socket.on("error", () => socket.destroy());
        (socket.alpnProtocol === "h2" ? http2 : http1).emit("connection", socket);
      },
    );
  // Node tells of a handshake that failed or took too long, and leaves its connection open.
  secure?.on("tlsClientError", (_error, socket) => socket.destroy());
  const accept = (socket: Socket) => (secure === undefined ? sniff(socket) : secure.emit("connection", socket));
  const sniff = (socket: Socket) => {
    const head: Buffer[] = [];
    const giveUp = () => socket.destroy();
    const onReadable = () => {
      for (let chunk = socket.read(); chunk !== null; chunk = socket.read()) head.push(chunk);
      const bytes = Buffer.concat(head);
      const start = bytes.toString("latin1", 0, HTTP2_PREFACE.length);
      if (bytes.length < HTTP2_PREFACE.length && HTTP2_PREFACE.startsWith(start)) return;
      socket.off("readable", onReadable).off("end", giveUp).setTimeout(0).off("timeout", giveUp);
      silent.delete(socket);
      // In this order: HTTP/2 would lose bytes that are put back after it has taken the connection.
      socket.unshift(bytes);
      (start === HTTP2_PREFACE ? http2 : http1).emit("connection", socket);
    };
    silent.add(socket);
    socket.on("readable", onReadable).on("end", giveUp).setTimeout(headTimeout, giveUp);
    socket.once("close", () => silent.delete(socket));
  };

  const listener = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    socket.on("error", () => socket.destroy());
    if (handler === undefined) waiting.push(socket);
    else accept(socket);
  });
  const address = await new Promise<AddressInfo>((resolve, reject) => {
    listener.once("error", (error: NodeJS.ErrnoException) => reject(cannotListen(name, host, port, error)));
    listener.listen(port, host, () => resolve(listener.address() as AddressInfo));
  });
  const scheme = tls === undefined ? "http" : "https";
  const shownHost = host.includes(":") ? `[${host}]` : host;

  return {
    url: `${scheme}://${shownHost}:${address.port}`,
    port: address.port,
    scheme,
    serve(given) {
      handler = given;
      for (const socket of waiting) accept(socket);
      waiting = [];
    },
    close(grace) {
      for (const socket of silent) socket.destroy();
      for (const session of sessions) session.close();
      const { promise, resolve } = Promise.withResolvers<void>();
      const cut = setTimeout(() => {
        for (const socket of sockets) socket.destroy();
      }, grace);
      // Connections become idle one by one as their answers go out.
      const closeIdle = setInterval(() => http1.closeIdleConnections(), 20);
      listener.close(() => {
        clearTimeout(cut);
        clearInterval(closeIdle);
        http1.close();
        http2.close();
        resolve();
      });
      return promise;
    },
  };
}

/** Whether a body may still be on its way when the answer goes out: whatever does not come along with its head. */
function mayComeLate({ headers }: Request): boolean {
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 4096;
}

/**
 * Keeps a connection in order whose request is answered before it has come as a whole. Who stops to iterate over a
 * request destroys it, and its connection would then stay open and never be read again: so nobody destroys it, and
 * what is left of it is read and forgotten, within reason.
 */
function outlive(request: IncomingMessage, response: ServerResponse): void {
  request[Symbol.asyncIterator] = () => request.iterator({ destroyOnReturn: false });
  response.once("finish", () => {
    let left = MAX_LEFTOVER;
    request.removeAllListeners("data").on("data", (chunk: Buffer) => {
      left -= chunk.length;
      if (left < 0) request.socket.destroy();
    });
  });
}

function cannotListen(name: string, host: string, port: number, error: NodeJS.ErrnoException): Error {
  const reason =
    error.code === "EADDRINUSE" ? "the port is taken" : error.code === "EACCES" ? "no permission" : error.message;
  return new Error(`cannot open the ${name} listener on ${host}:${port}: ${reason}`, { cause: error });
}
