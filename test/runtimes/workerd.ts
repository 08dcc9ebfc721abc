/** Starts the tests of suite.ts in workerd, the runtime of Cloudflare's Workers. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { startProgram, whileRunning } from "../support/processes.ts";
import { scratch } from "../support/service.ts";
import { bundle } from "./bundle.ts";
import type { Running } from "./commands.ts";
import { programOf } from "./installed.ts";

export const worker = await bundle("worker.ts", ["workerd", "worker", "browser"]);

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

export async function startWorkerd(): Promise<Running> {
  const directory = scratch();
  writeFileSync(join(directory, "main.js"), worker.code);
  writeFileSync(join(directory, "config.capnp"), CONFIG);
  const program = programOf("@cloudflare/workerd-*/bin/workerd");
  const workerd = startProgram(program, ["serve", "config.capnp", "--control-fd=1"], { cwd: directory });
  const port = await whileRunning(workerd, async () => {
    const [, found] = /"socket":"http","port":(\d+)/.exec(workerd.output()) ?? [];
    if (found === undefined) throw new Error("no port yet");
    return found;
  });
  return {
    async run(command, input) {
      const body = JSON.stringify({ command, input });
      const headers = { "content-type": "text/plain" };
      const response = await fetch(`http://127.0.0.1:${port}/`, { method: "POST", headers, body });
      if (!response.ok) throw new Error(`${await response.text()}\n${workerd.output()}`);
      return ((await response.json()) as { readonly result?: unknown }).result;
    },
    stop: () => workerd.stop(),
  };
}
