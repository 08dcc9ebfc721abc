/** Starts `examples/web` by its own command. */
import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { freePort } from "../support/free-port.ts";
import { compiled } from "../support/program.ts";
import { scratch } from "../support/service.ts";

export type Example = {
  readonly port: number;
  readonly url: string;
  readonly child: ChildProcess;
  /** The id of the process in which the example runs the session service. */
  readonly servicePid: number;
  /** The exit code of the program. */
  readonly exited: Promise<number | null>;
  /** Suspends the session service. */
  pause(): void;
  resume(): void;
  stop(): Promise<void>;
};

/** Starts the program; `errors` is what it has written on stderr when it has ended. */
export function runExample(port: number, env: Readonly<Record<string, string>> = {}) {
  const child = spawn(process.execPath, ["examples/web/start.ts"], {
    env: { PATH: process.env.PATH, ...compiled(), PORT: String(port), DATA_DIR: join(scratch(), "data"), ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let errors = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    errors += text;
  });
  const exited = new Promise<number | null>((resolve) => child.once("close", resolve));
  return { child, exited, errors: () => errors };
}

export async function startExample(): Promise<Example> {
  const port = await freePort();
  const { child, exited, errors } = runExample(port);
  const lines = createInterface({ input: child.stdout });
  const url = `http://localhost:${port}`;
  await new Promise<void>((resolve, reject) => {
    lines.on("line", (line) => line.includes(url) && resolve());
    void exited.then((code) => reject(new Error(`exit code ${code}: ${errors()}`)));
  });
  const servicePid = Number(readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, "utf8").trim());
  return {
    port,
    url,
    child,
    servicePid,
    exited,
    pause: () => process.kill(servicePid, "SIGSTOP"),
    resume: () => process.kill(servicePid, "SIGCONT"),
    async stop() {
      child.kill("SIGINT");
      await exited;
    },
  };
}
