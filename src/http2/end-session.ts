/**
 * Ends an HTTP/2 connection of a server so that no request is lost (RFC 9113 section 6.8): a first GOAWAY, with the greatest
 * stream id, makes the client open no more streams; one with the last stream follows when everything has arrived that the
 * client sent before it read the first.
 */
import type { Http2Session } from "node:http2";
import type { Socket } from "node:net";
import { patientTimeout } from "../clock/after-reading.ts";
import { writeBetweenFrames } from "./write-between-frames.ts";

/** GOAWAY (RFC 9113 section 6.8): length, type, flags, stream 0, last stream 2^31 - 1, NO_ERROR. */
const SHUTDOWN_NOTICE = Buffer.from(["000008", "07", "00", "00000000", "7fffffff", "00000000"].join(""), "hex");
/** A client that takes longer for the response to a PING is not waited for, ms. */
const ROUND_TRIP_MS = 5000;

const ending = new WeakSet<Http2Session>();

/**
 * Has the client leave, and closes the connection when its requests have their responses. Called again, it does nothing.
 * @param socket the connection, which `session.socket` hides
 */
export function endSession(session: Http2Session, socket: Socket): void {
  if (ending.has(session)) return;
  ending.add(session);
  void endInOrder(session, socket);
}

async function endInOrder(session: Http2Session, socket: Socket): Promise<void> {
  // After the first round trip our SETTINGS, which must come first, are out.
  if (await makesRoundTrip(session)) {
    writeBetweenFrames(session, socket, SHUTDOWN_NOTICE);
    // Twice: the response to a PING may overtake the request that the client has just written.
    if (await makesRoundTrip(session)) await makesRoundTrip(session);
  }
  if (!isOver(session)) session.close();
}

const isOver = (session: Http2Session) => session.destroyed || session.closed;

/** Resolves with whether the client has responded to a PING in time. */
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
