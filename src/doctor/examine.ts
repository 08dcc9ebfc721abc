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

function readFindings(env: Environment): { readonly config?: Config; readonly findings: readonly Finding[] } {
  const report = reportOf("configuration");
  const misspelt = (config?: Config) =>
    configWarnings(env, config).map((line) => report.warning(line, "correct it, or remove it from the environment"));
  try {
    const config = readConfig(env);
    const set = [...configVariables().keys()].filter((name) => env[name]).length;
    return { config, findings: [report.ok(`no fault; variables set: ${set}`), ...misspelt(config)] };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const faults = error.faults.map((line) => report.fault(line, "correct the variable (docs/configuration.md)"));
    return { findings: [...faults, ...misspelt()] };
  }
}
