/** Starts a server of ../ as a process. */
import { join } from "node:path";
import { startProgram, whileRunning } from "../../../support/processes.ts";
import { succeed } from "./contender.ts";

/** @param path what the server responds to as soon as it is ready */
export async function startPeer(file: string, port: number, path: string, env: Readonly<Record<string, string>>) {
  const program = startProgram(process.execPath, [join(import.meta.dirname, "..", file)], {
    env: { PORT: String(port), NODE_ENV: "production", ...env },
  });
  await whileRunning(program, () => succeed(`http://127.0.0.1:${port}${path}`));
  return program;
}
