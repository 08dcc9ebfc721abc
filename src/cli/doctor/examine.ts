/** Runs all checks of an installation, one after the other, and yields each finding at once. */
import type { Config } from "../../config/config.ts";
import type { Environment } from "../../config/reader.ts";
import { examineConfig } from "../../config/warnings.ts";
import { checkBrowsers } from "./browsers.ts";
import { checkCertificate } from "./certificate.ts";
import { checkAdminTokens, checkDataDir, checkEmbedded } from "./files.ts";
import { type Check, type Finding, type Report, reportOf } from "./finding.ts";
import { checkEventKeys, checkKeys } from "./keys.ts";
import { checkRedis } from "./redis.ts";
import { checkService } from "./service.ts";

type CheckInstallation = (report: Report, config: Config, clock: () => number) => void | Promise<void>;

/** The checks that depend on the configuration. */
const CHECKS: readonly (readonly [Check, CheckInstallation])[] = [
  ["files", checkDataDir],
  ["keys", checkKeys],
  ["keys", checkEventKeys],
  ["admin tokens", checkAdminTokens],
  ["certificate", checkCertificate],
  ["browsers", checkBrowsers],
  ["embedded store", checkEmbedded],
  ["redis", checkRedis],
  ["service", checkService],
];

type ExamineDeps = {
  readonly env: Environment;
  /** Returns the time in ms since the epoch. */
  readonly clock: () => number;
};

export async function* examine({ env, clock }: ExamineDeps): AsyncGenerator<Finding> {
  const { config, faults, warnings, setCount } = examineConfig(env);
  const { ok, warning, fault, findings } = reportOf("configuration");
  if (config !== undefined) ok(`no fault; variables set: ${setCount}`);
  for (const line of faults) fault(line, "correct the variable (docs/configuration.md)");
  for (const line of warnings) warning(line, "correct it, or remove it from the environment");
  yield* findings;
  if (config === undefined) return;
  for (const [name, check] of CHECKS) {
    const report = reportOf(name);
    await check(report, config, clock);
    yield* report.findings;
  }
}
