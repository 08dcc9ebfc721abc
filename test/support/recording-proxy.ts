/** A TCP proxy in front of a Redis that records the commands, however busy the machine is. */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

export type RecordingProxy = {
  readonly port: number;
  /** Returns the commands since the last call, each as its words, in the order in which they were sent. */
  take(): string[][];
  stop(): Promise<void>;
};

export async function startRecordingProxy(target: number): Promise<RecordingProxy> {
  let commands: string[][] = [];
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(target, "127.0.0.1");
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("error", () => {}).on("close", () => sockets.delete(socket));
    }
    const read = commandReader((words) => commands.push(words));
    client.on("data", (bytes: Buffer) => {
      read(bytes);
      upstream.write(bytes);
    });
    client.on("close", () => upstream.destroy());
    upstream.on("data", (bytes) => client.write(bytes)).on("close", () => client.destroy());
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    take() {
      const taken = commands;
      commands = [];
      return taken;
    },
    async stop() {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, "close");
    },
  };
}

/** Parses commands in the protocol of Redis (RESP): `*<count>`, then for each word `$<length>` and the word. Each part ends with CR LF. */
export function commandReader(onCommand: (words: string[]) => void): (bytes: Buffer) => void {
  let pending = Buffer.alloc(0);
  return (bytes) => {
    pending = Buffer.concat([pending, bytes]);
    for (let read = readCommand(pending); read !== undefined; read = readCommand(pending)) {
      onCommand(read.words);
      pending = pending.subarray(read.end);
    }
  };
}

/** Returns the first command in some bytes, and the position of its end; undefined if the command is incomplete. */
function readCommand(bytes: Buffer): { readonly words: string[]; readonly end: number } | undefined {
  let end = 0;
  const number = (): number | undefined => {
    const lineEnd = bytes.indexOf("\r\n", end);
    if (lineEnd < 0) return undefined;
    const value = Number(bytes.toString("latin1", end + 1, lineEnd));
    end = lineEnd + 2;
    return value;
  };
  const count = number();
  if (count === undefined) return undefined;
  const words: string[] = [];
  while (words.length < count) {
    const length = number();
    if (length === undefined || bytes.length < end + length + 2) return undefined;
    words.push(bytes.toString("utf8", end, end + length));
    end += length + 2;
  }
  return { words, end };
}
