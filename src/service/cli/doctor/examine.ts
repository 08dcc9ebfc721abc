/** Runs all checks of an installation, one after the other, and yields each finding at once. */
import type { Config } from "../../config/config.ts";
import { examineConfig } from "../../config/findings.ts";
import type { Environment } from "../../config/reader.ts";
import { checkCertificate } from "./certificate.ts";
import { checkAdminTokens, checkDataDir, checkEmbedded, checkPolicies, checkProviders } from "./files.ts";
import { type CheckName, type Finding, type Report, reportOf } from "./finding.ts";
import { checkEventKeys, checkKeys } from "./keys.ts";
import { checkRedis } from "./redis.ts";
import { checkService } from "./service.ts";

type CheckInstallation = (report: Report, config: Config, clock: () => number) => void | Promise<void>;

/** The checks that depend on the configuration. */
const CHECKS: readonly (readonly [CheckName, CheckInstallation])[] = [
  ["files", checkDataDir],
  ["files", checkPolicies],
  ["files", checkProviders],
  ["keys", checkKeys],
  ["keys", checkEventKeys],
  ["admin tokens", checkAdminTokens],
  ["certificate", checkCertificate],
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
  const { config, faults, findings: configFindings, setCount } = examineConfig(env);
  const { ok, fault, findings } = reportOf("configuration");
  if (config !== undefined) ok(`no fault; variables set: ${setCount}`);
  for (const line of faults) fault(line, "correct the variable (docs/reference/configuration.md)");
  for (const { about, ...finding } of configFindings) findings.push({ check: about, ...finding });
  yield* findings;
  if (config === undefined) return;
  if (!configFindings.some(({ about }) => about === "browsers")) {
    yield { check: "browsers", level: "ok", found: "browsers keep the cookie, and send it from the allowed origins" };
  }
  for (const [name, check] of CHECKS) {
    const report = reportOf(name);
    await check(report, config, clock);
    yield* report.findings;
  }
}
