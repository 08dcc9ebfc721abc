/** Environment → config → start → signals. */
import { ConfigError, readConfig } from "./config/config.ts";
import { createLogger } from "./observability/logger.ts";
import { StartError, start } from "./server/start.ts";

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

try {
  const config = readConfig(process.env);
  const log = createLogger(config.logLevel);
  const service = await start(config, {
    log,
    out: (text) => process.stdout.write(text),
    onFatal: (error) => fail(faultsOf(error)),
  });

  const stop = (signal: string) => {
    log.info({ event: "stopping", signal }, "stopping");
    service.stop().then(
      () => process.exit(0),
      (error: unknown) => fail(faultsOf(error)),
    );
  };
  process.once("SIGTERM", stop);
  process.once("SIGINT", stop);
} catch (error) {
  fail(faultsOf(error));
}
