/** TLS on connections that the listener has accepted: HTTP/1.1 and HTTP/2 by ALPN. */
import type { Socket } from "node:net";
import { createSecureContext, createServer, type SecureContextOptions } from "node:tls";

export type Tls = Pick<SecureContextOptions, "cert" | "key"> & {
  /**
   * Asks clients for a certificate of one of these authorities (PEM). The handshake only verifies: clients without one, or
   * with another, are served too, and the handlers decide by `socket.authorized`.
   */
  readonly clientCa?: Buffer | undefined;
};

export type SecureSide = {
  take(socket: Socket): void;
  /** Uses another certificate for handshakes from now on. @throws when the two do not belong together */
  replace(tls: Tls): void;
};

const contextOptions = ({ cert, key, clientCa }: Tls) => ({
  cert,
  key,
  ...(clientCa && { ca: clientCa }),
  minVersion: "TLSv1.2" as const,
});

/** @throws when certificate and key do not belong together */
export function checkTls(tls: Tls): void {
  createSecureContext(contextOptions(tls));
}

export function createSecureSide(
  tls: Tls,
  handshakeTimeoutMs: number,
  found: (version: "http1" | "http2", socket: Socket) => void,
): SecureSide {
  const server = createServer(
    {
      ...contextOptions(tls),
      ...(tls.clientCa && { requestCert: true, rejectUnauthorized: false }),
      ALPNProtocols: ["h2", "http/1.1"],
      handshakeTimeout: handshakeTimeoutMs,
    },
    (socket) => {
      socket.on("error", () => socket.destroy());
      found(socket.alpnProtocol === "h2" ? "http2" : "http1", socket);
    },
  );
  // Node reports a handshake that failed or took too long, and leaves its connection open.
  server.on("tlsClientError", (_error, socket) => socket.destroy());
  return {
    take: (socket) => void server.emit("connection", socket),
    replace: (next) => server.setSecureContext(contextOptions({ ...next, clientCa: tls.clientCa })),
  };
}
