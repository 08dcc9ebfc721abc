import type { Socket } from "node:net";
import { createSecureContext, createServer, type SecureContextOptions } from "node:tls";

export type Tls = Pick<SecureContextOptions, "cert" | "key"> & {
  /**
   * The authorities (PEM) of client certificates. Clients are asked for a certificate, but the handshake only verifies it: clients
   * without one, or with one of another authority, may connect too, and the handlers check `socket.authorized`.
   */
  readonly clientCa?: string | undefined;
};

type SecureSide = {
  take(socket: Socket): void;
  /** Uses another certificate for all later handshakes. @throws Error if the certificate and its key do not belong together */
  replace(tls: Tls): void;
};

const contextOptions = ({ cert, key, clientCa }: Tls) => ({
  cert,
  key,
  ...(clientCa && { ca: clientCa }),
  minVersion: "TLSv1.2" as const,
});

/** @throws Error if the certificate and its key do not belong together */
export function checkTls(tls: Tls): void {
  createSecureContext(contextOptions(tls));
}

export function createSecureSide(
  tls: Tls,
  handshakeTimeoutMs: number,
  onNegotiated: (version: "http1" | "http2", socket: Socket) => void,
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
      onNegotiated(socket.alpnProtocol === "h2" ? "http2" : "http1", socket);
    },
  );
  // Node reports a handshake that failed or took too long, but leaves its connection open.
  server.on("tlsClientError", (_error, socket) => socket.destroy());
  return {
    take: (socket) => void server.emit("connection", socket),
    replace: (next) => server.setSecureContext(contextOptions(next)),
  };
}
