/** Starts the tests of suite.ts in workerd, the runtime of Cloudflare's Workers. */
import { bundle } from "./bundle.ts";
import type { Running } from "./commands.ts";
import { serveByWorkerd } from "./serve-workerd.ts";

export const worker = await bundle("worker.ts", ["workerd", "worker", "browser"]);

export async function startWorkerd(): Promise<Running> {
  const { port, workerd } = await serveByWorkerd(worker.code);
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
