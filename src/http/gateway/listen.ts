/** One port for HTTP/1.1 and HTTP/2: by ALPN with TLS, by prior knowledge without (RFC 9113 section 3.3). */
import { once } from "node:events";
import { createServer as createHttp1 } from "node:http";
import { createServer as createHttp2, createSecureServer, type Http2Session } from "node:http2";
import { type AddressInfo, createServer, type Socket } from "node:net";
import type { NodeHandler } from "../node/node-handler.ts";

export interface TlsFiles {
  readonly cert: Buffer;
  readonly key: Buffer;
}

export interface GatewayListener {
  readonly port: number;
  /** Uses another certificate for new connections. */
  replaceTls(tls: TlsFiles): void;
  /** Takes no more connections, waits for open requests, then closes everything. */
  close(drainMs: number): Promise<void>;
}

/** How long a client may take for the head of its request. */
const HEAD_TIMEOUT_MS = 10_000;
const PREFACE = "PRI";

export async function listen(
  handler: NodeHandler,
  address: { readonly host: string; readonly port: number },
  tls: TlsFiles | undefined,
): Promise<GatewayListener> {
  const sockets = new Set<Socket>();
  const sessions = new Set<Http2Session>();
  let [open, draining] = [0, false];
  let onIdle = () => {};
  const counted: NodeHandler = (request, response) => {
    open++;
    if (draining && !("stream" in response)) response.setHeader("connection", "close");
    response.once("close", () => {
      if (--open === 0) onIdle();
    });
    handler(request, response);
  };
  const limits = { headersTimeout: HEAD_TIMEOUT_MS };
  const secure = tls && createSecureServer({ ...tls, ...limits, allowHTTP1: true }, counted);
  const server = secure ?? createPlainServer(counted, limits, sessions);
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  secure?.on("session", (session) => track(sessions, session));
  server.listen(address.port, address.host);
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    replaceTls: (next) => secure?.setSecureContext(next),
    async close(drainMs) {
      draining = true;
      const closed = once(server, "close");
      server.close();
      for (const session of sessions) session.close();
      if (open > 0) {
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
    },
  };
}

/** Hands each connection to the HTTP version that its first bytes belong to. */
function createPlainServer(handler: NodeHandler, limits: object, sessions: Set<Http2Session>) {
  const http1 = createHttp1(limits, handler);
  const http2 = createHttp2(handler).on("session", (session) => track(sessions, session));
  return createServer((socket) => {
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
      const version = head.toString("latin1", 0, PREFACE.length) === PREFACE ? http2 : http1;
      version.emit("connection", socket);
    };
    socket.on("readable", onReadable);
    socket.once("close", stop);
    socket.on("error", () => socket.destroy());
  });
}

function track(sessions: Set<Http2Session>, session: Http2Session): void {
  sessions.add(session);
  session.once("close", () => sessions.delete(session));
  session.on("error", () => session.destroy());
}
