/** Runs all checks of an installation, one after the other, and yields each finding at once. */
import { type Config, ConfigError, configVariables, readConfig } from "../config/config.ts";
import type { Environment } from "../config/reader.ts";
import { configWarnings } from "../config/warnings.ts";
import { checkBrowsers } from "./browsers.ts";
import { checkCertificate } from "./certificate.ts";
import { checkEmbedded } from "./embedded.ts";
import { checkAdminTokens, checkDataDir } from "./files.ts";
import { type Finding, reportOf } from "./finding.ts";
import { checkEventKeys, checkKeys } from "./keys.ts";
import { checkRedis } from "./redis.ts";
import { checkService } from "./service.ts";

type ExamineDeps = {
  readonly env: Environment;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
};

export async function* examine(deps: ExamineDeps): AsyncGenerator<Finding> {
  const { env, clock } = deps;
  const { config, findings } = readFindings(env);
  yield* findings;
  // All further checks depend on the configuration.
  if (config === undefined) return;
  const now = clock();
  yield* await checkDataDir(config);
  yield* await checkKeys(config, now);
  yield* await checkEventKeys(config);
  yield* await checkAdminTokens(config);
  yield* checkCertificate(config, now);
  yield* checkBrowsers(config);
  yield* config.redis === undefined ? await checkEmbedded(config) : await checkRedis(config, config.redis, clock);
  yield* await checkService(config);
}

function readFindings(env: Environment): {
  readonly config: Config | undefined;
  readonly findings: readonly Finding[];
} {
  const { ok, warning, fault, findings } = reportOf("configuration");
  let config: Config | undefined;
  try {
    config = readConfig(env);
    ok(`no fault; variables set: ${[...configVariables().keys()].filter((name) => env[name]).length}`);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    for (const line of error.faults) fault(line, "correct the variable (docs/configuration.md)");
  }
  for (const line of configWarnings(env, config)) warning(line, "correct it, or remove it from the environment");
  return { config, findings };
}
