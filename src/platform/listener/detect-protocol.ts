import type { Socket } from "node:net";
import { patientTimeout } from "../clock/after-reading.ts";

/** The first bytes of an HTTP/2 connection with prior knowledge (RFC 9113 section 3.4). No HTTP/1.1 method begins with them. */
const HTTP2_PREFACE = "PRI";

type ProtocolDetector = {
  detect(socket: Socket): void;
  /** Closes the connections that have not sent enough bytes to tell HTTP/1.1 from HTTP/2. */
  closeSilent(): void;
};

/** Distinguishes HTTP/2 by prior knowledge from HTTP/1.1, by the first bytes of a connection. */
export function detectProtocol(
  timeoutMs: number,
  onDetected: (version: "http1" | "http2", socket: Socket) => void,
): ProtocolDetector {
  const silent = new Set<Socket>();
  return {
    detect(socket) {
      const head: Buffer[] = [];
      const giveUp = () => socket.destroy();
      const onReadable = () => {
        for (let chunk = socket.read(); chunk !== null; chunk = socket.read()) head.push(chunk);
        const bytes = Buffer.concat(head);
        const start = bytes.toString("latin1", 0, HTTP2_PREFACE.length);
        if (bytes.length < HTTP2_PREFACE.length && HTTP2_PREFACE.startsWith(start)) return;
        socket.off("readable", onReadable).off("end", giveUp);
        cancelTimeout();
        silent.delete(socket);
        // The order matters: HTTP/2 would lose bytes that are put back after it has taken the connection.
        socket.unshift(bytes);
        onDetected(start === HTTP2_PREFACE ? "http2" : "http1", socket);
      };
      silent.add(socket);
      const cancelTimeout = patientTimeout(giveUp, timeoutMs);
      socket.on("readable", onReadable).on("end", giveUp);
      socket.once("close", () => {
        silent.delete(socket);
        cancelTimeout();
      });
    },
    closeSilent() {
      for (const socket of silent) socket.destroy();
    },
  };
}
