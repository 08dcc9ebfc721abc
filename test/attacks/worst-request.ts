/** Measures the cost of a request to the service, and how the service behaves under a constant rate of bytes. */
import { readdirSync, readFileSync } from "node:fs";
import { Agent, request as send } from "node:http";
import { type ClientHttp2Session, connect as connectHttp2 } from "node:http2";
import { connect, type Socket } from "node:net";
import { Worker } from "node:worker_threads";
import { type Candidate, numbered } from "./requests.ts";

/** Returns the CPU time that all threads of a process have used, in µs. */
function processorTimeUs(pid: number): number {
  const tasks = readdirSync(`/proc/${pid}/task`);
  const spentNs = tasks.map((task) =>
    Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, "utf8").split(" ")[0]),
  );
  return spentNs.reduce((all, each) => all + each, 0) / 1000;
}

/** A client with one connection, which counts what it sends. */
export interface Sender {
  /** Sends a request; resolves with its status, 0 for none. */
  send(candidate: Candidate): Promise<number>;
  sentBytes(): number;
  close(): void;
}

export function overHttp1(url: string, localAddress?: string): Sender {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const sockets = new Set<Socket>();
  return {
    send: ({ method, path, headers, body }) =>
      new Promise((resolve) => {
        const length = body.length === 0 ? {} : { "content-length": String(body.length) };
        const options = { agent, method, path, headers: { ...headers, ...length }, localAddress };
        const outgoing = send(url, options, (incoming) => {
          incoming.resume().once("close", () => resolve(incoming.statusCode ?? 0));
        });
        outgoing.once("socket", (socket) => sockets.add(socket));
        outgoing.once("error", () => resolve(0)).end(body);
      }),
    sentBytes: () => [...sockets].reduce((all, { bytesWritten }) => all + bytesWritten, 0),
    close: () => agent.destroy(),
  };
}

/** A client over HTTP/2. A header that was sent before costs one byte, because HPACK's table contains it. */
export function overHttp2(url: string, localAddress?: string): Sender {
  const { hostname, port } = new URL(url);
  let socket: Socket | undefined;
  let bytesOfClosed = 0;
  let session: ClientHttp2Session | undefined;
  const open = () => {
    bytesOfClosed += socket?.bytesWritten ?? 0;
    const next = connect({ port: Number(port), host: hostname, ...(localAddress && { localAddress }) });
    socket = next;
    return connectHttp2(url, { createConnection: () => next }).on("error", () => {});
  };
  return {
    send: ({ method, path, headers, body }) =>
      new Promise((resolve) => {
        if (session === undefined || session.closed || session.destroyed) session = open();
        const fields = { ...headers, ":method": method, ":path": path };
        const stream = session.request(fields, { endStream: body.length === 0 });
        let status = 0;
        stream.once("response", (head) => {
          status = Number(head[":status"]);
        });
        stream.on("error", () => {}).once("close", () => resolve(status));
        if (body.length > 0) stream.end(body);
        stream.resume();
      }),
    sentBytes: () => bytesOfClosed + (socket?.bytesWritten ?? 0),
    close: () => session?.destroy(),
  };
}

export type Cost = {
  readonly candidate: Candidate;
  readonly protocol: string;
  readonly status: number;
  readonly bytes: number;
  /** The CPU time that one request costs the service, in µs. */
  readonly us: number;
  readonly usPerByte: number;
};

/** Sends a request again and again, one after the other. */
export async function costOf(
  pid: number,
  protocol: string,
  sender: Sender,
  candidate: Candidate,
  times: number,
): Promise<Cost> {
  // The first request is not measured, because it also opens the connection and fills HPACK's table.
  await sender.send(candidate);
  const [usBefore, bytesBefore] = [processorTimeUs(pid), sender.sentBytes()];
  let status = 0;
  for (let count = 0; count < times; count++) status = await sender.send(numbered(candidate, count));
  const us = (processorTimeUs(pid) - usBefore) / times;
  const bytes = (sender.sentBytes() - bytesBefore) / times;
  return { candidate, protocol, status, bytes, us, usPerByte: us / bytes };
}

export type FloodOptions = {
  readonly url: string;
  readonly address: string;
  readonly protocol: string;
  readonly candidate: Candidate;
  readonly bytesPerSecond: number;
};

export type Flood = { readonly sent: number; readonly served: number; readonly bytesPerSecond: number };

/** Sends a request again and again from a thread of its own, until the returned function is called. */
export function startFlood(options: FloodOptions): () => Promise<Flood> {
  const thread = new Worker(new URL("./flood.ts", import.meta.url), { workerData: options });
  const ended = new Promise<Flood>((resolve, reject) => {
    thread.once("message", resolve).once("error", reject);
  });
  return async () => {
    thread.postMessage("stop");
    const flood = await ended;
    await thread.terminate();
    return flood;
  };
}
