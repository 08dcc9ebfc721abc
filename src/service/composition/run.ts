import { openListener } from "../../platform/listener/listener.ts";
import { type Config, ConfigError, readConfig } from "../config/config.ts";
import { configFindings, lineOf } from "../config/findings.ts";
import type { Environment } from "../config/reader.ts";
import { createLogger, type Log } from "../observability/logger.ts";
import { createSignInRecords, type RecordsCall } from "../pages/console/sign-ins.ts";
import { joinSupervisor } from "../workers/join.ts";
import { supervise } from "../workers/supervise.ts";
import { type Service, start } from "./start.ts";
import { StartError, startError } from "./start-error.ts";
import { StopSignals } from "./stop-signals.ts";

/** How long a stalled reader of the output may delay the end of the process, in ms. */
const LAST_WORDS_TIMEOUT_MS = 1000;

/** Runs the service until a signal ends it. If it cannot start, the process ends with code 1 and one line per fault. */
export async function run(env: NodeJS.ProcessEnv): Promise<void> {
  // If the reader of the output disconnects (EPIPE), the service continues.
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {});
  try {
    const config = readConfig(env);
    await serve(config, env, createLogger(config.logLevel));
  } catch (error) {
    await fail(error, env);
  }
}

/** Starts the service, or its workers, for signals to stop. */
async function serve(config: Config, env: NodeJS.ProcessEnv, output: Log): Promise<void> {
  const { log } = output;
  const worker = joinSupervisor(env);
  // A worker logs no findings, because the supervisor has logged them.
  const findings = worker === undefined ? configFindings(env, config) : [];
  for (const finding of findings) log.warn({ event: "config_warning" }, lineOf(finding));
  process.on("uncaughtException", (err) => {
    log.fatal({ event: "uncaught_exception", err }, "uncaught_exception");
    void endProcess(output, 1);
  });
  const failed = (error: unknown) => fail(error, env, output);
  const signals = new StopSignals({
    log,
    end: (stopped) => stopped.then(() => endProcess(output, 0), failed),
  });
  const deps = { log, logCounts: output.counts, out: (text: string) => process.stdout.write(text), ...worker };
  const isSupervisor = config.workers > 1 && worker === undefined;
  const starting = isSupervisor
    ? superviseWorkers(config, { ...deps, env, serveCall: serveSignIns(), onStart: signals.setService })
    : start(config, deps);
  await starting.then(signals.setService, (error: unknown) => {
    // Workers that are stopped while they start end before they are ready. The process ends when all of them have ended.
    if (!signals.hasArrived) return failed(error);
  });
}

function endProcess(output: Log, code: number): Promise<void> {
  return output.flush().finally(() => process.exit(code));
}

/** Keeps the console's sign-ins for all workers, because each request of a browser may reach another worker. */
function serveSignIns(): (call: unknown) => unknown {
  const records = createSignInRecords(Date.now);
  // Workers call the supervisor only to use these records. Supervisor and workers run the same code, so the call needs no check.
  return (call) => records(call as RecordsCall);
}

/** Writes what was logged, then the faults for the operator, and ends the process with code 1. */
async function fail(error: unknown, env: Environment, output?: Log): Promise<never> {
  await output?.flush();
  const exit = () => process.exit(1);
  process.stderr.write(`${faultsOf(error, env).join("\n")}\n`, exit);
  return new Promise(() => setTimeout(exit, LAST_WORDS_TIMEOUT_MS));
}

/** Returns the faults for the operator: known ones by their text, all others with their stack. */
function faultsOf(error: unknown, env: Environment): readonly string[] {
  // A misspelt name may be the cause of a fault, so the warnings are added.
  if (error instanceof ConfigError) return [...error.faults, ...configFindings(env).map(lineOf)];
  if (error instanceof StartError) return [error.message];
  return [error instanceof Error ? (error.stack ?? error.message) : String(error)];
}

/** @throws StartError */
async function superviseWorkers(config: Config, deps: Parameters<typeof supervise>[1]): Promise<Pick<Service, "stop">> {
  const { host, port, adminHost, adminPort, workers } = config;
  try {
    // Workers share their ports with any process of this user. Opening the ports exclusively first shows whether they are taken.
    await (await openListener("public", host, port)).close(0);
    await (await openListener("admin", adminHost, adminPort)).close(0);
    return await supervise(workers, deps);
  } catch (error) {
    throw startError(error);
  }
}
