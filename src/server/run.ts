/** Environment → config → start → signals. */
import { type Config, ConfigError, readConfig } from "../config/config.ts";
import type { Environment } from "../config/reader.ts";
import { configWarnings } from "../config/warnings.ts";
import { createSignInRecords, type RecordsCall } from "../console/sign-in-records.ts";
import { openListener } from "../listener/listener.ts";
import { createLogger, type Log } from "../observability/logger.ts";
import { joinSupervisor } from "../workers/join.ts";
import { supervise } from "../workers/supervise.ts";
import { type Service, start } from "./start.ts";
import { StartError, startError } from "./start-error.ts";

/** How soon a signal that comes again is the same order, passed on by a parent process, ms. */
const SAME_ORDER_MS = 500;
/** How long a reader that stalls holds up the end of the process. */
const LAST_WORDS_TIMEOUT_MS = 1000;

/** Runs the service until a signal ends it; ends the process with code 1 and a line per fault when it cannot. */
export async function run(env: NodeJS.ProcessEnv): Promise<void> {
  // A reader of our output that leaves (EPIPE) ends nothing.
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {});
  try {
    const config = readConfig(env);
    const output = createLogger(config.logLevel);
    const { log } = output;
    const worker = joinSupervisor(env);
    // The supervisor has logged them.
    const warnings = worker === undefined ? configWarnings(env, config) : [];
    for (const warning of warnings) log.warn({ event: "config_warning" }, warning);
    process.on("uncaughtException", (err) => {
      log.fatal({ event: "uncaught_exception", err }, "uncaught_exception");
      void output.flush().finally(() => process.exit(1));
    });
    let service: Pick<Service, "stop"> | undefined;
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
        () => output.flush().finally(() => process.exit(0)),
        (error: unknown) => fail(error, env, output),
      );
    };
    process.on("SIGTERM", stop);
    process.on("SIGINT", stop);
    const out = (text: string) => process.stdout.write(text);
    const deps = { log, logCounts: output.counts, out, ...worker };
    const isSupervisor = config.workers > 1 && worker === undefined;
    const starting = isSupervisor
      ? superviseWorkers(config, { ...deps, env, serveCall: serveSignIns() })
      : start(config, deps);
    service = await starting.catch((error: unknown) => fail(error, env, output));
  } catch (error) {
    await fail(error, env);
  }
}

/** The sign-ins to the console, for all workers: a browser comes to any of them. */
function serveSignIns(): (call: unknown) => unknown {
  const records = createSignInRecords(Date.now);
  // Workers run the same code, and call nothing else.
  return (call) => records(call as RecordsCall);
}

/** Ends the process once the operator's lines are written, after all that was logged before. */
async function fail(error: unknown, env: Environment, output?: Log): Promise<never> {
  await output?.flush();
  const exit = () => process.exit(1);
  process.stderr.write(`${faultsOf(error, env).join("\n")}\n`, exit);
  return new Promise(() => setTimeout(exit, LAST_WORDS_TIMEOUT_MS));
}

/** What went wrong, for the operator: known faults by their text, anything else with its stack. */
function faultsOf(error: unknown, env: Environment): readonly string[] {
  // A misspelt name may be the cause of a fault.
  if (error instanceof ConfigError) return [...error.faults, ...configWarnings(env)];
  if (error instanceof StartError) return [error.message];
  return [error instanceof Error ? (error.stack ?? error.message) : String(error)];
}

/** @throws StartError */
async function superviseWorkers(config: Config, deps: Parameters<typeof supervise>[1]): Promise<Pick<Service, "stop">> {
  const { host, port, adminHost, adminPort, workers } = config;
  try {
    // Workers share their ports with any process of this user. Another service that has them would go unnoticed.
    await (await openListener("public", host, port)).close(0);
    await (await openListener("admin", adminHost, adminPort)).close(0);
    return await supervise(workers, deps);
  } catch (error) {
    throw startError(error);
  }
}
