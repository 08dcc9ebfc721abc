/** Runs commands in separate process groups, so that processes that a test has started end with the command. */
import { spawn } from "node:child_process";

export type Ended = {
  readonly code: number | null;
  readonly output: string;
  /** Whether the process ran for longer than the limit, and was killed. */
  readonly timedOut: boolean;
  readonly tookMs: number;
};

const running = new Set<() => void>();

export const endRuns = () => {
  for (const end of running) end();
};

export function run(cwd: string, command: string, args: readonly string[], limitMs?: number): Promise<Ended> {
  const startedAt = performance.now();
  const child = spawn(command, args, { cwd, detached: true, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
  }
  const end = () => {
    try {
      process.kill(-(child.pid as number), "SIGKILL");
    } catch {
      // The process group no longer exists.
    }
  };
  running.add(end);
  let timedOut = false;
  const timer = setTimeout(
    () => {
      timedOut = true;
      end();
    },
    limitMs ?? 2 ** 31 - 1,
  );
  return new Promise((resolve) => {
    child.once("exit", (code) => {
      clearTimeout(timer);
      end();
      running.delete(end);
      resolve({ code, output, timedOut, tookMs: performance.now() - startedAt });
    });
  });
}
