/**
 * Writes an HTTP/2 frame that Node has no API for: a first GOAWAY.
 * Node ignores new streams after any GOAWAY that it has sent itself, so the first GOAWAY must be written directly to the operating system.
 * `socket.write` is not safe for that: if its bytes must wait for the client, or if the connection is encrypted, Node aborts the process
 * when they are written (`Http2Session::OnStreamAfterWrite`, `TLSWrap::DoWrite`).
 */
import { writeSync } from "node:fs";
import type { Http2Session } from "node:http2";
import type { Socket } from "node:net";

/** Node's internal handle of a socket: its file descriptor, and the number of bytes that wait to be sent. */
type Handle = { readonly fd?: number; readonly writeQueueSize?: number };

/** Writes a frame to the operating system at once, between two frames of Node, or not at all. Encrypted connections are refused. */
export function writeBetweenFrames(session: Http2Session, socket: Socket, frame: Buffer): void {
  const handle = (socket as Socket & { readonly _handle?: Handle | null })._handle;
  // Node writes whole frames, so if no bytes are waiting, the last frame is complete.
  if (session.destroyed || session.encrypted || handle?.writeQueueSize !== 0 || !((handle.fd ?? -1) >= 0)) return;
  try {
    const written = writeSync(handle.fd as number, frame);
    if (written !== frame.length) socket.destroy();
  } catch {
    // The operating system does not accept bytes now (EAGAIN), or the connection is closed.
  }
}
