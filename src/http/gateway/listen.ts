/** One port for HTTP/1.1 and HTTP/2: by ALPN with TLS, by prior knowledge without (RFC 9113 section 3.3). */
import { once } from "node:events";
import { createServer as createHttp1 } from "node:http";
import { createServer as createHttp2, type Http2Session } from "node:http2";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import { endSession } from "../../http2/end-session.ts";
import type { NodeHandler } from "../node/node-handler.ts";

export interface TlsFiles {
  readonly cert: Buffer;
  readonly key: Buffer;
}

export interface GatewayListener {
  readonly port: number;
  /** Uses another certificate for new connections. */
  replaceTls(tls: TlsFiles): void;
  /** Takes no more connections, waits for open requests and for those on their way, then closes everything. */
  close(drainMs: number): Promise<void>;
}

/** How long a client may take for the handshake, and for the head of its request. */
const HEAD_TIMEOUT_MS = 10_000;
const PREFACE = "PRI";

export async function listen(
  handler: NodeHandler,
  address: { readonly host: string; readonly port: number },
  tls: TlsFiles | undefined,
): Promise<GatewayListener> {
  const sockets = new Set<Socket>();
  let [open, draining] = [0, false];
  let onIdle = () => {};
  const counted: NodeHandler = (request, response) => {
    open++;
    if (draining && !("stream" in response)) response.setHeader("connection", "close");
    response.once("close", () => {
      open--;
      checkIdle();
    });
    handler(request, response);
  };
  const versions = createVersions(counted, () => checkIdle());
  const isIdle = () => open === 0 && versions.sessions() === 0;
  const checkIdle = () => {
    if (isIdle()) onIdle();
  };
  const secure = tls && createSecureServer(tls, versions);
  const server = secure ?? createServer((socket) => detectVersion(socket, versions));
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  server.listen(address.port, address.host);
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    replaceTls: (next) => secure?.setSecureContext(next),
    async close(drainMs) {
      draining = true;
      const closed = once(server, "close");
      server.close();
      versions.drain();
      if (!isIdle()) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, drainMs);
          onIdle = () => {
            clearTimeout(timer);
            resolve();
          };
        });
      }
      for (const socket of sockets) socket.destroySoon();
      await closed;
      versions.close();
    },
  };
}

interface Versions {
  take(version: "http1" | "http2", socket: Socket): void;
  /** How many connections of HTTP/2 are open. */
  sessions(): number;
  /** Has clients of HTTP/2 leave, without losing what they have sent. */
  drain(): void;
  close(): void;
}

/** A server of each HTTP version, which never listens itself: connections are handed to it. */
function createVersions(handler: NodeHandler, onSessionEnd: () => void): Versions {
  const sessions = new Map<Http2Session, Socket>();
  let [taken, draining]: [Socket | undefined, boolean] = [undefined, false];
  // A stream of messages in a request has no end that could be late.
  const http1 = createHttp1({ headersTimeout: HEAD_TIMEOUT_MS, requestTimeout: 0 }, handler);
  // Without this it keeps no list of its connections and enforces none of their timeouts.
  http1.emit("listening");
  const http2 = createHttp2(handler).on("session", (session) => {
    const socket = taken as Socket;
    sessions.set(session, socket);
    session.once("close", () => {
      sessions.delete(session);
      onSessionEnd();
    });
    session.on("error", () => session.destroy());
    if (draining) endSession(session, socket);
  });
  return {
    take(version, socket) {
      taken = socket;
      (version === "http1" ? http1 : http2).emit("connection", socket); // and in it "session"
      taken = undefined;
    },
    sessions: () => sessions.size,
    drain() {
      draining = true;
      for (const [session, socket] of sessions) endSession(session, socket);
    },
    close() {
      http1.close();
      http2.close();
    },
  };
}

function createSecureServer(tls: TlsFiles, versions: Versions) {
  const ALPNProtocols = ["h2", "http/1.1"];
  const options = { ...tls, ALPNProtocols, handshakeTimeout: HEAD_TIMEOUT_MS };
  const server = createTlsServer(options, (socket) => {
    socket.on("error", () => socket.destroy());
    versions.take(socket.alpnProtocol === "h2" ? "http2" : "http1", socket);
  });
  // Node reports a handshake that failed or took too long, and leaves its connection open.
  return server.on("tlsClientError", (_error, socket) => socket.destroy());
}

/** Hands a connection to the HTTP version that its first bytes belong to. */
function detectVersion(socket: Socket, versions: Versions): void {
  const timer = setTimeout(() => socket.destroy(), HEAD_TIMEOUT_MS);
  const stop = () => clearTimeout(timer);
  const onReadable = () => {
    const head = socket.read() as Buffer | null;
    if (head === null) return;
    // Fewer bytes than the preface may still become it; HTTP/1.1 has no method that starts like this.
    if (head.length < PREFACE.length && PREFACE.startsWith(head.toString("latin1"))) return void socket.unshift(head);
    stop();
    socket.off("readable", onReadable);
    socket.unshift(head);
    versions.take(head.toString("latin1", 0, PREFACE.length) === PREFACE ? "http2" : "http1", socket);
  };
  socket.on("readable", onReadable);
  socket.once("close", stop);
  socket.on("error", () => socket.destroy());
}
