/**
 * Ends an HTTP/2 connection of a server so that no request is lost (RFC 9113 section 6.8). A first GOAWAY, with the greatest stream id,
 * makes the client open no more streams. A second one, with the id of the last stream, follows after everything has arrived that the client
 * had sent before it received the first.
 */
import { writeSync } from "node:fs";
import type { Http2Session } from "node:http2";
import type { Socket } from "node:net";
import { patientTimeout } from "../clock/after-reading.ts";

/** The first GOAWAY frame (RFC 9113 section 6.8): length, type, flags, stream 0, last stream 2^31 - 1, NO_ERROR. */
const SHUTDOWN_NOTICE = Buffer.from(["000008", "07", "00", "00000000", "7fffffff", "00000000"].join(""), "hex");
/** How long to wait for the acknowledgement of a PING, in milliseconds. */
const ROUND_TRIP_MS = 5000;

const ending = new WeakSet<Http2Session>();

/**
 * Makes the client stop using the connection, and closes it when all requests have their responses. Further calls do nothing.
 * @param socket the socket of the connection, which `session.socket` does not give direct access to
 */
export function endSession(session: Http2Session, socket: Socket): void {
  if (ending.has(session)) return;
  ending.add(session);
  void endInOrder(session, socket);
}

async function endInOrder(session: Http2Session, socket: Socket): Promise<void> {
  // A server's first frame must be SETTINGS. After one round trip, Node has sent that frame, so GOAWAY may follow.
  if (await makesRoundTrip(session)) {
    writeBetweenFrames(session, socket, SHUTDOWN_NOTICE);
    // A second PING is needed, because the acknowledgement of the first may overtake a request that the client has just written.
    if (await makesRoundTrip(session)) await makesRoundTrip(session);
  }
  if (!isOver(session)) session.close();
}

const isOver = (session: Http2Session) => session.destroyed || session.closed;

/** Sends a PING. Resolves with whether the client has acknowledged it in time. */
function makesRoundTrip(session: Http2Session): Promise<boolean> {
  return new Promise((resolve) => {
    if (isOver(session)) return resolve(false);
    const cancelTimeout = patientTimeout(() => resolve(false), ROUND_TRIP_MS);
    session.ping((error) => {
      cancelTimeout();
      resolve(error === null);
    });
  });
}

/** Node's internal handle of a socket: its file descriptor, and the number of bytes that wait to be sent. */
type Handle = { readonly fd?: number; readonly writeQueueSize?: number };

/**
 * Writes a frame to the operating system at once, between two frames of Node, or not at all. Encrypted connections are refused.
 * Node ignores new streams after any GOAWAY that it has sent itself, so the first GOAWAY is written without Node. `socket.write` is not
 * safe: if its bytes must wait, Node aborts the process when it writes them (`Http2Session::OnStreamAfterWrite`; on encrypted connections
 * `TLSWrap::DoWrite`).
 */
export function writeBetweenFrames(session: Http2Session, socket: Socket, frame: Buffer): void {
  const handle = (socket as Socket & { readonly _handle?: Handle | null })._handle;
  // Node writes whole frames, so if no bytes are waiting, the last frame is complete.
  if (session.destroyed || session.encrypted || handle?.writeQueueSize !== 0 || !((handle.fd ?? -1) >= 0)) return;
  try {
    const written = writeSync(handle.fd as number, frame);
    if (written !== frame.length) socket.destroy();
  } catch {
    // The frame is not sent: the operating system does not accept bytes now (EAGAIN), or the connection is closed.
  }
}
