/** A process that receives webhooks on loopback, accepts all, and reports when each session's first signal came. */
import { fork } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

type Report = { readonly received: number; readonly firstAt: Readonly<Record<string, number>> };

export type Sink = {
  readonly url: string;
  /** Returns what has come since the start; the times are those of `wallNow`. */
  report(): Promise<Report>;
  stop(): void;
};

/** Returns a time, in ms, that processes of one machine can compare. */
export const wallNow = () => performance.timeOrigin + performance.now();

export async function startSink(): Promise<Sink> {
  const child = fork(import.meta.filename);
  process.once("exit", () => child.kill("SIGKILL"));
  const [url] = (await once(child, "message")) as [string];
  return {
    url,
    async report() {
      child.send("report");
      return (await once(child, "message"))[0] as Report;
    },
    stop: () => void child.kill("SIGKILL"),
  };
}

async function serve(): Promise<void> {
  const firstAt = new Map<string, number>();
  let received = 0;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk) => chunks.push(chunk));
    request.on("end", () => {
      response.end();
      received++;
      const [, sessionId = ""] = /"session_id":"([^"]+)"/.exec(Buffer.concat(chunks).toString("latin1")) ?? [];
      if (!firstAt.has(sessionId)) firstAt.set(sessionId, wallNow());
    });
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  process.on("message", () => process.send?.({ received, firstAt: Object.fromEntries(firstAt) } satisfies Report));
  process.send?.(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
}

if (import.meta.main) await serve();
