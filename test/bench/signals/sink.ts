/**
 * A process of receivers of webhooks, each on a separate port of loopback. They accept everything, and report when the first signal of
 * each session arrived.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";

type Report = { readonly received: number; readonly firstAt: Readonly<Record<string, number>> };

type Sink = {
  /**
   * The URLs, one for each receiver. The service has few connections to each origin, so subscriptions with one origin would wait for each
   * other.
   */
  readonly urls: readonly string[];
  /** Returns what has come since the start; the times are those of `wallNow`. */
  report(): Promise<Report>;
  stop(): void;
};

/** Returns a time, in ms, that processes of one machine can compare. */
export const wallNow = () => performance.timeOrigin + performance.now();

export async function startSink(receivers: number): Promise<Sink> {
  const child = fork(import.meta.filename, [String(receivers)]);
  process.once("exit", () => child.kill("SIGKILL"));
  const [urls] = (await once(child, "message")) as [readonly string[]];
  return {
    urls,
    async report() {
      child.send("report");
      return (await once(child, "message"))[0] as Report;
    },
    stop: () => void child.kill("SIGKILL"),
  };
}

async function serve(receivers: number): Promise<void> {
  const firstAt = new Map<string, number>();
  let received = 0;
  const receive: RequestListener = (request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk) => chunks.push(chunk));
    request.on("end", () => {
      response.end();
      received++;
      const [, sessionId = ""] = /"session_id":"([^"]+)"/.exec(Buffer.concat(chunks).toString("latin1")) ?? [];
      if (!firstAt.has(sessionId)) firstAt.set(sessionId, wallNow());
    });
  };
  const urls: string[] = [];
  while (urls.length < receivers) {
    const server = createServer(receive).listen(0, "127.0.0.1");
    await once(server, "listening");
    urls.push(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
  }
  process.on("message", () => process.send?.({ received, firstAt: Object.fromEntries(firstAt) } satisfies Report));
  process.send?.(urls);
}

if (import.meta.main) await serve(Number(process.argv[2]));
