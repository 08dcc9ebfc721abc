/**
 * A frame that Node has no API for. After any GOAWAY of its own Node ignores new streams, so the announcement of one must
 * go past it. `socket.write` must not: where its bytes have to wait for the client, or the connection is encrypted, Node aborts
 * the process when they are out (`Http2Session::OnStreamAfterWrite`, `TLSWrap::DoWrite`).
 */
import { writeSync } from "node:fs";
import type { Http2Session } from "node:http2";
import type { Socket } from "node:net";

/** What Node keeps below a socket: its descriptor, and the bytes that wait for the peer to read others. */
type Handle = { readonly fd?: number; readonly writeQueueSize?: number };

/** Writes a frame to the system at once, between two frames of Node, or not at all; never to an encrypted connection. */
export function writeBetweenFrames(session: Http2Session, socket: Socket, frame: Buffer): void {
  const handle = (socket as Socket & { readonly _handle?: Handle | null })._handle;
  // Node writes whole frames: where none of its bytes wait, the last one is complete.
  if (session.destroyed || session.encrypted || handle?.writeQueueSize !== 0 || !((handle.fd ?? -1) >= 0)) return;
  try {
    const written = writeSync(handle.fd as number, frame);
    if (written !== frame.length) socket.destroy();
  } catch {
    // The system takes nothing now (EAGAIN), or the connection is gone.
  }
}
