/** An HTTP/2 client that follows RFC 9113: after GOAWAY, it opens no more streams on that connection. */
import { once } from "node:events";
import {
  type ClientHttp2Session,
  connect,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type SecureClientSessionOptions,
} from "node:http2";
import { text } from "node:stream/consumers";

export type Http2Reply = {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
};

export type Http2Client = {
  /** Sends a request without a body. Rejects if its stream fails after it was sent. */
  send(headers: OutgoingHttpHeaders): Promise<Http2Reply>;
  close(): void;
};

export function http2Client(url: string, options: SecureClientSessionOptions = {}): Http2Client {
  let session: ClientHttp2Session | undefined;
  const usable = () => {
    if (session === undefined || session.closed || session.destroyed) {
      const opened = connect(url, options).on("error", () => {});
      opened.once("goaway", () => {
        if (session === opened) session = undefined;
      });
      session = opened;
    }
    return session;
  };
  return {
    close: () => session?.destroy(),
    async send(headers) {
      const used = usable();
      const stream = used.request(headers, { endStream: true });
      // If a GOAWAY arrived together with the end of the last response, Node reports a frame error and never sends this request. The client
      // may then send it on another connection. If a request was sent and then refused, that is a failure.
      let wasSent = true;
      stream.once("frameError", () => {
        wasSent = false;
      });
      try {
        const [received] = (await once(stream, "response")) as [IncomingHttpHeaders & { ":status"?: number }];
        return { status: Number(received[":status"]), headers: received, body: await text(stream) };
      } catch (error) {
        if (wasSent) throw error;
        if (session === used) session = undefined;
        return this.send(headers);
      }
    },
  };
}
