/** The runtimes other than Node, each as the program that its users run. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { rolldown } from "rolldown";
import { programOf } from "../../runtimes/installed.ts";
import { serveByWorkerd } from "../../runtimes/serve-workerd.ts";
import { startProgram, whileRunning } from "../../support/processes.ts";
import { scratch } from "../../support/service.ts";
import type { Running } from "./frameworks.ts";

/** Returns the worker as a module without imports. The service imports the entry for Node, in whose place it gets the one for fetch. */
async function bundle(): Promise<string> {
  const build = await rolldown({
    input: join(import.meta.dirname, "worker.ts"),
    platform: "neutral",
    resolve: { mainFields: ["module", "main"], conditionNames: ["import", "default"] },
    plugins: [
      {
        name: "entry",
        resolveId: (id) =>
          /connect-http-routes\/index\.ts$/.test(id)
            ? join(import.meta.dirname, "../../../src/connect-http-routes/fetch/index.ts")
            : null,
      },
    ],
  });
  try {
    const { output } = await build.generate({ format: "esm", codeSplitting: false });
    return output[0].code;
  } finally {
    await build.close();
  }
}

async function startRuntime(pattern: string, args: readonly string[]): Promise<Running> {
  const directory = scratch();
  writeFileSync(join(directory, "worker.mjs"), await bundle());
  const program = startProgram(programOf(pattern), [...args, "worker.mjs"], { cwd: directory });
  const port = await whileRunning(program, async () => {
    const [, found] = /https?:\/\/[^\s:]+:(\d+)/.exec(program.output()) ?? [];
    if (found === undefined) throw new Error("no port yet");
    return Number(found);
  });
  return { port, close: () => program.stop() };
}

export const bun = () => startRuntime("@oven/*/bin/bun", ["--no-install"]);

export const deno = () =>
  startRuntime("@deno/*/deno", ["serve", "--no-lock", "--cached-only", "--host=127.0.0.1", "--port=0"]);

export async function workers(): Promise<Running> {
  const { port, workerd } = await serveByWorkerd(await bundle());
  return { port, close: () => workerd.stop() };
}
