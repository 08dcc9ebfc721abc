/** A TCP proxy in front of a Redis that records the commands, however busy the machine is. */
import { startTcpProxy, type TcpProxy } from "./tcp-proxy.ts";

export type RecordingProxy = Pick<TcpProxy, "port" | "stop"> & {
  /** Returns the commands since the last call, each as its words, in the order in which they were sent. */
  take(): string[][];
};

export async function startRecordingProxy(target: number): Promise<RecordingProxy> {
  let commands: string[][] = [];
  const { port, stop } = await startTcpProxy(target, (client, upstream) => {
    const read = commandReader((words) => commands.push(words));
    client.on("data", (bytes: Buffer) => {
      read(bytes);
      upstream.write(bytes);
    });
    client.on("close", () => upstream.destroy());
    upstream.on("data", (bytes) => client.write(bytes)).on("close", () => client.destroy());
  });
  return {
    port,
    stop,
    take() {
      const taken = commands;
      commands = [];
      return taken;
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
