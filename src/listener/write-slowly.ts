import { constants } from "node:http2";
import { patientTimeout } from "../platform/clock/after-reading.ts";
import type { Response } from "./exchange.ts";
import { WRITE_TIMEOUT_MS } from "./limits.ts";

/** The body is written in pieces of this size, in bytes, because TLS and HTTP/2 copy all bytes that are passed to one write. */
const PIECE_BYTES = 64 * 1024;

/** Ends a response with a body, as fast as the client reads it. If the client reads nothing, the response is cut. It never rejects. */
export async function writeSlowly(response: Response, body: Buffer): Promise<void> {
  for (let at = 0; at < body.length; at += PIECE_BYTES) {
    const piece = body.subarray(at, at + PIECE_BYTES);
    // TypeScript cannot unify the overloads of `write` in the two types.
    const isTaken = "stream" in response ? response.write(piece) : response.write(piece);
    if (!isTaken && !(await drained(response))) return cut(response);
  }
  response.end();
}

/** Waits for the client. @returns whether the response accepts more bytes */
function drained(response: Response): Promise<boolean> {
  return new Promise((resolve) => {
    const settle = (takesMore: boolean) => () => {
      cancelTimeout();
      response.off("drain", onDrain).off("close", onClose);
      resolve(takesMore);
    };
    const onDrain = settle(true);
    const onClose = settle(false);
    const cancelTimeout = patientTimeout(onClose, WRITE_TIMEOUT_MS);
    response.once("drain", onDrain).once("close", onClose);
  });
}

function cut(response: Response): void {
  if ("stream" in response) response.stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
  else response.destroy();
}
