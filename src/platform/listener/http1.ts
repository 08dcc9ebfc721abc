import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import { afterReading } from "../clock/after-reading.ts";
import type { Handler } from "./handler.ts";
import { type ListenerLimits, MAX_HEAD_BYTES, MAX_LEFTOVER_BYTES, MAX_PIPELINED } from "./limits.ts";
import { createPendingBodies } from "./pending-bodies.ts";

/** Serves one version of HTTP on the connections of a listener. */
export type Protocol = {
  take(socket: Socket): void;
  /** Makes clients disconnect: each response from now on is the last on its connection. */
  drain(): void;
  /** Closes connections without a request in flight, now and whenever a connection becomes idle. */
  closeIdle(): void;
  close(): void;
};

type Connection = {
  /** The response in progress, or the last one. */
  current: ServerResponse | undefined;
  /** The pipelined requests that wait for this response. */
  readonly waiting: Set<IncomingMessage>;
  /** How many bytes the client had sent before HTTP/1.1 began on this connection, such as a TLS handshake. */
  readonly sentBefore: number;
};

type Connections = Map<Socket, Connection>;

/** How often timeouts are checked, in ms. */
const CHECK_MS = 1000;
/** How often idle connections are looked for while the listener closes, in ms. */
const IDLE_CHECK_MS = 20;

export function createHttp1(limits: ListenerLimits, handle: Handler): Protocol {
  const pending = createPendingBodies(limits.maxPendingBodies);
  const connections: Connections = new Map();
  let draining = false;
  let closing: NodeJS.Timeout | undefined;

  const server = createNodeServer(limits, connections);
  server.on("request", (request, response) => {
    const connection = connections.get(request.socket);
    if (connection === undefined) return; // The client has disconnected.
    // Node assigns the socket to a response only after the previous responses, so pipelined requests are handled one after another.
    if (response.socket === null) return wait(server, connection, request, response);
    connection.current = response;
    if (draining) announceClose(connection);
    const { "transfer-encoding": encoding, "content-length": length = 0 } = request.headers;
    // The body may still be arriving when the response is sent.
    if (encoding !== undefined || Number(length) > 4096) {
      pending.add(request);
      outlive(request, response);
    }
    handle(request, response);
  });

  const closeIdle = () => {
    server.closeIdleConnections();
    for (const [socket, { current, sentBefore }] of connections) {
      if (current === undefined && socket.bytesRead === sentBefore) socket.destroy();
    }
  };
  return {
    take(socket) {
      const sentBefore = socket.bytesRead - socket.readableLength;
      connections.set(socket, { current: undefined, waiting: new Set(), sentBefore });
      socket.once("close", () => connections.delete(socket));
      server.emit("connection", socket);
    },
    drain() {
      draining = true;
      for (const connection of connections.values()) announceClose(connection);
    },
    closeIdle() {
      closing ??= setInterval(closeIdle, IDLE_CHECK_MS);
      closeIdle();
    },
    close() {
      clearInterval(closing);
      server.close();
    },
  };
}

/** Creates a server that does not listen: the listener passes connections to it. */
function createNodeServer(limits: ListenerLimits, connections: Connections): Server {
  const { headTimeoutMs, requestTimeoutMs, writeTimeoutMs, keepAliveTimeoutMs } = limits;
  const server = createServer({
    headersTimeout: Math.min(headTimeoutMs, requestTimeoutMs),
    requestTimeout: Number.isFinite(requestTimeoutMs) ? requestTimeoutMs : 0,
    keepAliveTimeout: keepAliveTimeoutMs,
    connectionsCheckingInterval: Math.min(CHECK_MS, headTimeoutMs / 2),
    maxHeaderSize: MAX_HEAD_BYTES,
  });
  // Node would silently drop header fields above a limit of their number, such as `Origin`. So only their bytes are limited.
  server.maxHeadersCount = 0;
  server.on("clientError", (error: NodeJS.ErrnoException, socket: Socket) => {
    const current = connections.get(socket)?.current;
    respondToUnread(error, socket, current?.headersSent === true && !current.writableFinished);
  });
  server.timeout = writeTimeoutMs;
  server.on("timeout", (socket: Socket) => {
    const { bytesRead, writableLength } = socket;
    afterReading(() => {
      const response = connections.get(socket)?.current;
      const isHandled = response !== undefined && !response.writableEnded && socket.writableLength === 0;
      const isActive = socket.bytesRead > bytesRead || socket.writableLength < writableLength;
      if (isHandled || isActive) socket.setTimeout(writeTimeoutMs);
      else socket.destroy();
    });
  });
  // Without this event the server keeps no list of its connections and enforces none of their timeouts.
  server.emit("listening");
  return server;
}

/** Serves a pipelined request when the responses before it have been sent. */
function wait(server: Server, connection: Connection, request: IncomingMessage, response: ServerResponse): void {
  const { waiting } = connection;
  waiting.add(request);
  // A client may have read a response, and sent the next request, before Node notices that it was sent. So one may wait, whatever its size.
  if (waiting.size > 1) {
    let bytes = 0;
    for (const each of waiting) bytes += bytesOf(each);
    if (waiting.size > MAX_PIPELINED || bytes > MAX_HEAD_BYTES) giveUp(connection, request.socket);
  }
  response.once("socket", () => {
    waiting.delete(request);
    server.emit("request", request, response);
  });
}

/** Returns roughly how many bytes a request takes while it waits. A chunked body may take any number. */
function bytesOf({ url = "", rawHeaders, headers }: IncomingMessage): number {
  const { "content-length": length = 0, "transfer-encoding": encoding } = headers;
  const body = encoding === undefined ? Number(length) : Number.POSITIVE_INFINITY;
  return rawHeaders.reduce((sum, text) => sum + text.length, url.length + body);
}

/** Closes a connection and destroys its pipelined requests. Node would destroy them with errors, which cost more than the requests. */
function giveUp({ waiting }: Connection, socket: Socket): void {
  socket.destroy();
  for (const request of waiting) request.destroy();
  waiting.clear();
}

/** Sets `Connection: close` on the response in progress, unless pipelined requests are to follow it on the connection. */
function announceClose({ current, waiting }: Connection): void {
  if (current !== undefined && waiting.size === 0 && !current.headersSent) current.setHeader("connection", "close");
}

/**
 * Keeps a connection usable whose response is sent before its whole request has arrived. Node would destroy a request whose iteration is
 * stopped early, and never read the open connection again. So the rest of the request is read and dropped, up to a limit.
 */
function outlive(request: IncomingMessage, response: ServerResponse): void {
  request[Symbol.asyncIterator] = () => request.iterator({ destroyOnReturn: false });
  response.once("finish", () => {
    let left = MAX_LEFTOVER_BYTES;
    request.removeAllListeners("data").on("data", (chunk: Buffer) => {
      left -= chunk.length;
      if (left < 0) request.socket.destroy();
    });
  });
}

/** The HTTP statuses by the error code of Node's parser. Any other parser error gets 400. */
const STATUS: Readonly<Record<string, number>> = {
  HPE_HEADER_OVERFLOW: 431,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 413,
  ERR_HTTP_REQUEST_TIMEOUT: 408,
};

/** If a browser has too many cookies, it displays this text, because only its user can delete them. */
const REASONS: Readonly<Record<number, string>> = {
  431: `The head of the request is larger than ${MAX_HEAD_BYTES / 1024} KiB. Cookies are the usual cause: delete those of this site and of the domains above it.\n`,
};

/** Responds once, and closes the connection. @param hasResponse whether a part of a response has been sent already */
export function respondToUnread(error: NodeJS.ErrnoException, socket: Socket, hasResponse: boolean): void {
  if (error.code === "ECONNRESET" || !socket.writable || hasResponse) return void socket.destroy();
  const status = STATUS[error.code ?? ""] ?? 400;
  const body = REASONS[status] ?? "";
  const fields = [
    "Connection: close",
    `Content-Length: ${body.length}`,
    "Content-Type: text/plain",
    "Cache-Control: no-store",
  ];
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${fields.join("\r\n")}\r\n\r\n${body}`);
}
