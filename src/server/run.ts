/** Environment → config → start → signals. */
import { format } from "node:util";
import { ConfigError, readConfig } from "../config/config.ts";
import { createLogger } from "../observability/logger.ts";
import { type Service, start } from "./start.ts";
import { StartError } from "./start-error.ts";

/** How soon a signal that comes again is the same order, passed on by a parent process, ms. */
const SAME_ORDER_MS = 500;

/** Runs the service until a signal ends it; ends the process with code 1 and a line per fault when it cannot. */
export async function run(env: NodeJS.ProcessEnv): Promise<void> {
  try {
    const config = readConfig(env);
    const log = await createLogger(config.logLevel);
    // What a dependency prints (ioredis warns of a password that Redis did not ask for) is a line of the log like others.
    for (const level of ["info", "warn", "error"] as const) {
      console[level] = (...words: readonly unknown[]) => log[level](format(...words));
    }
    let service: Service | undefined;
    let first: { readonly signal: string; readonly atMs: number } | undefined;
    const stop = (signal: string) => {
      const nowMs = performance.now();
      // A supervisor may signal us and our parent, which passes it on: that is one order to stop, not two.
      if (first?.signal === signal && nowMs - first.atMs < SAME_ORDER_MS) return;
      const manner = first === undefined && signal === "SIGTERM" ? "drain" : "now";
      first ??= { signal, atMs: nowMs };
      log.info({ event: "stopping", signal, manner }, "stopping");
      // Before it is ready there is nothing in flight that could be finished.
      Promise.resolve(service?.stop(manner)).then(
        () => process.exit(0),
        (error: unknown) => fail(faultsOf(error)),
      );
    };
    process.on("SIGTERM", stop);
    process.on("SIGINT", stop);
    service = await start(config, { log, out: (text) => process.stdout.write(text) });
  } catch (error) {
    fail(faultsOf(error));
  }
}

function fail(lines: readonly string[]): never {
  for (const line of lines) process.stderr.write(`${line}\n`);
  process.exit(1);
}

/** What went wrong, for the operator: known faults by their text, anything else with its stack. */
function faultsOf(error: unknown): readonly string[] {
  if (error instanceof ConfigError) return error.faults;
  if (error instanceof StartError) return [error.message];
  return [error instanceof Error ? (error.stack ?? error.message) : String(error)];
}
