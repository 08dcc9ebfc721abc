/** The command connect-http-gateway as a process. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { onTestFinished } from "vitest";

export type Line = Readonly<Record<string, unknown>>;

/** A running gateway: its log, and requests to it. */
export interface Running {
  readonly process: ChildProcess;
  readonly origin: string;
  readonly log: readonly Line[];
  /** The first line, also of those to come, that matches. */
  line(matches: (line: Line) => boolean): Promise<Line>;
}

export const MAIN = "src/gateway/main.ts";

export async function runGateway(...args: string[]): Promise<Running> {
  const child = spawn(process.execPath, [MAIN, "--listen", "127.0.0.1:0", ...args], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const exited = once(child, "exit");
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await exited;
  });
  const log: Line[] = [];
  let wake = () => {};
  createInterface({ input: child.stdout as NodeJS.ReadableStream }).on("line", (text) => {
    log.push(JSON.parse(text) as Line);
    wake();
  });
  const line = async (matches: (line: Line) => boolean): Promise<Line> => {
    for (;;) {
      const found = log.find(matches);
      if (found !== undefined) return found;
      await new Promise<void>((resolve, reject) => {
        wake = resolve;
        void exited.then(() => reject(new Error("the gateway has ended")));
      });
    }
  };
  const { port } = await line(({ event }) => event === "listening");
  return { process: child, origin: `http://127.0.0.1:${port}`, log, line };
}
