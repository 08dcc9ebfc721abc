/** Runs `session-service` with only the given environment, in a separate process or in this one. */
import { spawn } from "node:child_process";
import { runCommand } from "../../../src/service/cli/run.ts";
import { compiled, PROGRAM } from "../../support/program.ts";

export type Ended = { readonly code: number | null; readonly out: string; readonly err: string };

export type Running = {
  readonly ended: Promise<Ended>;
  readonly out: () => string;
  readonly err: () => string;
  readonly kill: (signal: NodeJS.Signals) => void;
};

type Settings = { readonly env?: Readonly<Record<string, string>>; readonly input?: string; readonly cwd?: string };

export function startCommand(args: readonly string[], { env = {}, input = "", cwd }: Settings = {}): Running {
  const child = spawn(process.execPath, [PROGRAM, ...args], {
    env: { PATH: process.env.PATH, ...compiled(), ...env },
    ...(cwd !== undefined && { cwd }),
  });
  const text = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const) {
    child[name].setEncoding("utf8").on("data", (chunk: string) => {
      text[name] += chunk;
    });
  }
  child.stdin.on("error", () => {}).end(input); // Writing the input fails if the command has ended without reading it.
  const ended = new Promise<Ended>((resolve) => {
    child.once("close", (code) => resolve({ code, out: text.stdout, err: text.stderr }));
  });
  return { ended, out: () => text.stdout, err: () => text.stderr, kill: (signal) => void child.kill(signal) };
}

export const command = (args: readonly string[], settings?: Settings): Promise<Ended> =>
  startCommand(args, settings).ended;

/** Runs a command in this process, which takes a twentieth of the time. It suits commands that need neither input nor signals. */
export async function commandHere(args: readonly string[], { env = {} }: Pick<Settings, "env"> = {}): Promise<Ended> {
  const ended = { code: 0, out: "", err: "" };
  await runCommand(args, {
    env: { PATH: process.env.PATH, ...env },
    print(text) {
      ended.out += `${text}\n`;
    },
    note(text) {
      ended.err += `${text}\n`;
    },
    setExitCode(code) {
      ended.code = code;
    },
    serve: () => Promise.reject(new Error("a service is a process of its own")),
  });
  return ended;
}
