/** Starts processes that keep the machine busy while tests run. */
import { spawn } from "node:child_process";
import { once } from "node:events";

/** The code of a loop. It ends when the process that started it has ended in any way. */
const LOOP = `
  const parent = Number(process.argv[1]);
  (function spin() {
    for (const end = performance.now() + 50; performance.now() < end; );
    if (process.ppid === parent) setImmediate(spin);
  })();`;

type BusyLoops = {
  readonly pids: readonly number[];
  /** Ends the processes that were started, and no others. */
  stop(): Promise<void>;
};

export function startBusyLoops(count: number): BusyLoops {
  const loops = Array.from({ length: count }, () =>
    spawn(process.execPath, ["-e", LOOP, String(process.pid)], { stdio: "ignore" }),
  );
  return {
    pids: loops.map(({ pid }) => pid ?? 0),
    async stop() {
      const running = loops.filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null);
      const ended = running.map((loop) => once(loop, "exit"));
      for (const loop of running) loop.kill("SIGKILL");
      await Promise.all(ended);
    },
  };
}
