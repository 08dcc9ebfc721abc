/** Runs programs beside the service. They are monitored, and end with the tests. */
import { type ChildProcess, spawn } from "node:child_process";
import { onExit } from "./on-exit.ts";
import { compiled } from "./program.ts";

const running = new Set<ChildProcess>();
onExit(() => {
  for (const child of running) child.kill("SIGKILL");
});

export type Program = {
  readonly pid: number;
  readonly exited: Promise<number | null>;
  /** Returns what the program has written to both outputs. */
  output(): string;
  kill(signal: NodeJS.Signals): void;
  stop(): Promise<void>;
};

export type ProgramOptions = { readonly cwd?: string; readonly env?: Readonly<Record<string, string>> };

/** Starts a program whose environment contains only PATH and the given variables. */
export function startProgram(command: string, args: readonly string[], { cwd, env }: ProgramOptions = {}): Program {
  const child = spawn(command, [...args], {
    cwd,
    env: { PATH: process.env.PATH, ...compiled(), ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const { pid } = child;
  if (pid === undefined) throw new Error(`${command} did not start`);
  running.add(child);
  let text = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
    });
  }
  const exited = new Promise<number | null>((resolve) => {
    child.once("close", (code) => {
      running.delete(child);
      resolve(code);
    });
  });
  return {
    pid,
    exited,
    output: () => text,
    kill: (signal) => void child.kill(signal),
    async stop() {
      child.kill("SIGTERM");
      await exited;
    },
  };
}

/** Repeats `attempt` until it succeeds, and returns its result. @throws with the program's output if the program ends before */
export async function whileRunning<T>(program: Program, attempt: () => Promise<T>): Promise<T> {
  let ended = false;
  void program.exited.then(() => {
    ended = true;
  });
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (ended) throw new Error(`it ended: ${program.output()}`, { cause: error });
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }
}
