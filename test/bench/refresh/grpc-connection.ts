/** Refreshes by gRPC, one stream at a time on a connection of HTTP/2. Only the server's time is measured, so the client may be Node's. */
import { type ClientHttp2Session, connect, type IncomingHttpHeaders } from "node:http2";
import type { Connection, Reply } from "./generator.ts";

/** An empty gRPC message: only the prefix of five zero bytes (no compression, length 0). */
const EMPTY_MESSAGE = Buffer.alloc(5);

export class GrpcConnection implements Connection {
  readonly #session: ClientHttp2Session;
  readonly #origin: string;

  constructor(session: ClientHttp2Session, origin: string) {
    this.#session = session.on("error", () => {});
    this.#origin = origin;
  }

  static open(port: number): Promise<Connection> {
    const origin = `http://127.0.0.1:${port}`;
    return new Promise((resolve, reject) => {
      const session = connect(origin);
      session.once("error", reject).once("connect", () => resolve(new GrpcConnection(session, origin)));
    });
  }

  /** @param credential a refresh token */
  send(credential: string, settle: (response: Reply | undefined) => void): void {
    if (this.#session.destroyed) {
      settle(undefined);
      return;
    }
    const stream = this.#session.request({
      ":method": "POST",
      ":path": "/auth.v1.SessionService/Refresh",
      "content-type": "application/grpc+proto",
      te: "trailers",
      origin: this.#origin,
      cookie: `refresh_token=${credential}`,
    });
    let head: IncomingHttpHeaders = {};
    let status: string | undefined;
    stream.on("response", (fields) => {
      head = fields;
    });
    stream.on("trailers", (fields) => {
      status = String(fields["grpc-status"]);
    });
    stream.on("close", () => settle(status === undefined ? undefined : replyOf(head, status)));
    stream.on("error", () => {});
    stream.resume().end(EMPTY_MESSAGE);
  }

  close(): void {
    this.#session.destroy();
  }
}

/** Converts a response. A gRPC status other than 0 counts as an unexpected response. */
function replyOf(head: IncomingHttpHeaders, status: string): Reply {
  const cookie = head["set-cookie"]?.find((value) => value.startsWith("refresh_token="));
  return {
    status: status === "0" ? String(head[":status"]) : `gRPC ${status}`,
    cookie: cookie?.slice("refresh_token=".length).split(";")[0],
  };
}
