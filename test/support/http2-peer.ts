/** An HTTP/2 client that reads raw frames, and sends what the test specifies. */
import { once } from "node:events";
import { connect } from "node:net";
import { connect as connectTls } from "node:tls";
import { FRAME, frame, PREFACE, settings } from "../attacks/frames.ts";

const ACK = 1;
const HEAD_BYTES = 9;

export type Frame = {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly payload: Buffer;
};

export type Http2Peer = {
  /** All frames that have arrived. */
  readonly frames: readonly Frame[];
  /** Takes the first frame that matches and has not been taken yet. */
  take(matches: (frame: Frame) => boolean): Promise<Frame>;
  send(...frames: readonly Buffer[]): void;
  acknowledge(ping: Frame): void;
  /** Stops reading, so that the server's data fills the buffers of the system. */
  pause(): void;
  resume(): void;
  /** Resolves when the server has closed the connection. */
  readonly closed: Promise<void>;
};

export const isPing = ({ type, flags }: Frame) => type === FRAME.ping && flags !== ACK;
export const isGoaway = ({ type }: Frame) => type === FRAME.goaway;
/** Returns the last stream id in a GOAWAY frame. */
export const lastStreamOf = ({ payload }: Frame) => payload.readUInt32BE(0);

/** Opens a connection, with TLS for a URL of https, and exchanges SETTINGS. */
export async function dialHttp2(
  url: string,
  ...values: readonly (readonly [id: number, value: number])[]
): Promise<Http2Peer> {
  const { port, protocol } = new URL(url);
  const isSecure = protocol === "https:";
  const socket = isSecure
    ? connectTls({ port: Number(port), host: "127.0.0.1", ALPNProtocols: ["h2"], rejectUnauthorized: false })
    : connect(Number(port), "127.0.0.1");
  await once(socket, isSecure ? "secureConnect" : "connect");
  const frames: Frame[] = [];
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  const taken = new Set<Frame>();
  let wake = () => {};
  let bytes = Buffer.alloc(0);
  socket.on("error", () => {}).on("close", () => wake());
  socket.on("data", (chunk: Buffer) => {
    bytes = Buffer.concat([bytes, chunk]);
    while (bytes.length >= HEAD_BYTES) {
      const end = HEAD_BYTES + bytes.readUIntBE(0, 3);
      if (bytes.length < end) break;
      const [type, flags, stream] = [bytes[3] as number, bytes[4] as number, bytes.readUInt32BE(5)];
      frames.push({ type, flags, stream, payload: bytes.subarray(HEAD_BYTES, end) });
      bytes = bytes.subarray(end);
    }
    wake();
  });
  const peer: Http2Peer = {
    frames,
    closed,
    async take(matches) {
      for (;;) {
        const found = frames.find((one) => !taken.has(one) && matches(one));
        if (found !== undefined) {
          taken.add(found);
          return found;
        }
        if (socket.destroyed) throw new Error("the server has closed the connection");
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
    send: (...sent) => void socket.write(Buffer.concat(sent)),
    acknowledge: ({ payload }) => void socket.write(frame(FRAME.ping, ACK, 0, payload)),
    pause: () => void socket.pause(),
    resume: () => void socket.resume(),
  };
  peer.send(PREFACE, settings(...values));
  await peer.take(({ type, flags }) => type === FRAME.settings && flags !== ACK);
  peer.send(frame(FRAME.settings, ACK, 0));
  return peer;
}
