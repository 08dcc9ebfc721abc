/**
 * Ends an HTTP/2 connection so that no request is lost (RFC 9113 section 6.8): a first GOAWAY that makes the client
 * open no more streams, and one with the last stream when everything has arrived that the client sent before it read the
 * first. Node can send the second alone, and ignores streams that come after it.
 */
import type { Http2Session } from "node:http2";
import type { Socket } from "node:net";

/** GOAWAY (RFC 9113 section 6.8): length, type, flags, stream 0, last stream 2^31 - 1, NO_ERROR. */
const SHUTDOWN_NOTICE = Buffer.from(["000008", "07", "00", "00000000", "7fffffff", "00000000"].join(""), "hex");
/** How long the response to a PING is awaited, ms. */
const ROUND_TRIP_MS = 1000;

export function closeGracefully(session: Http2Session, socket: Socket): void {
  // After the first round trip our SETTINGS, which must come first, are out. Node writes whole frames, so one may be
  // put between them.
  afterRoundTrip(session, () => {
    socket.write(SHUTDOWN_NOTICE);
    // Twice: the response to a PING may overtake the request that the client has just written.
    afterRoundTrip(session, () => afterRoundTrip(session, () => session.close()));
  });
}

function afterRoundTrip(session: Http2Session, next: () => void): void {
  let isOver = false;
  const proceed = () => {
    clearTimeout(timer);
    if (isOver || session.destroyed || session.closed) return;
    isOver = true;
    next();
  };
  const timer = setTimeout(proceed, ROUND_TRIP_MS);
  if (session.destroyed || session.closed) proceed();
  else session.ping(proceed);
}
