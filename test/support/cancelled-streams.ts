/** A proxy whose clients disconnect: it cancels their requests on the connection that it shares with other clients. */
import { MAX_RESETS } from "../../src/platform/listener/limits.ts";
import { END_HEADERS, END_STREAM, FRAME, frame, requestBlock } from "../attacks/frames.ts";
import { dialHttp2 } from "./http2-peer.ts";

const CANCEL = Buffer.from([0, 0, 0, 8]);
const PING = frame(FRAME.ping, 0, 0, Buffer.alloc(8));
/** How many requests arrive at once. */
const BURST = 300;
/** More than the limits of this service and of nghttp2 together. */
const COUNT = 6 * MAX_RESETS;

/** Cancels many requests. Resolves with whether a request after them has a response on the same connection. */
export async function servesAfterCancelling(url: string, method: string, path: string): Promise<boolean> {
  const peer = await dialHttp2(url);
  const head = requestBlock(method, path);
  const open = (stream: number) => frame(FRAME.headers, END_HEADERS | END_STREAM, stream, head);
  let stream = 1;
  const cancelled = () => Buffer.concat([open(stream), frame(FRAME.reset, 0, stream, CANCEL)]);
  try {
    for (let sent = 0; sent < COUNT; sent += BURST) {
      const burst: Buffer[] = [];
      for (; burst.length < BURST; stream += 2) burst.push(cancelled());
      peer.send(...burst, PING);
      await peer.take(({ type }) => type === FRAME.ping);
    }
    peer.send(open(stream));
    await peer.take((found) => found.type === FRAME.headers && found.stream === stream);
    return true;
  } catch {
    return false; // The connection was closed.
  }
}
