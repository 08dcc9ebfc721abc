/** Serves a worker by workerd, the runtime of Cloudflare's Workers. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Program, startProgram, whileRunning } from "../support/processes.ts";
import { scratch } from "../support/service.ts";
import { programOf } from "./installed.ts";

/** The configuration of workerd. It does not enable Node compatibility, and lets the worker connect to this machine. */
const CONFIG = `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = (modules = [(name = "main.js", esModule = embed "main.js")], compatibilityDate = "2026-11-01")),
    (name = "internet", network = (allow = ["public", "private"])),
  ],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "main")],
);
`;

/** @param code a module without imports */
export async function serveByWorkerd(code: string): Promise<{ readonly port: number; readonly workerd: Program }> {
  const directory = scratch();
  writeFileSync(join(directory, "main.js"), code);
  writeFileSync(join(directory, "config.capnp"), CONFIG);
  const program = programOf("@cloudflare/workerd-*/bin/workerd");
  const workerd = startProgram(program, ["serve", "config.capnp", "--control-fd=1"], { cwd: directory });
  const port = await whileRunning(workerd, async () => {
    const [, found] = /"socket":"http","port":(\d+)/.exec(workerd.output()) ?? [];
    if (found === undefined) throw new Error("no port yet");
    return Number(found);
  });
  return { port, workerd };
}
