/** Checks the files that hold secrets or grant rights. */
import { stat } from "node:fs/promises";
import type { Config } from "../config/config.ts";
import { errorCode } from "../files/error-code.ts";
import { protectionFault } from "../files/protection.ts";
import { loadAdminAccess } from "../tokens/admin-access.ts";
import { AdminTokensFault } from "../tokens/admin-entries.ts";
import { type Finding, reportOf } from "./finding.ts";

const hasOwnToken = (config: Config) => config.adminTokens === undefined && config.adminTokensFile === undefined;

export async function checkDataDir(config: Config): Promise<readonly Finding[]> {
  const { ok, fault } = reportOf("files");
  if (config.redis !== undefined && !hasOwnToken(config)) return [];
  const path = config.dataDir;
  try {
    if (!(await stat(path)).isDirectory()) return [fault(`DATA_DIR: ${path} is no directory`, "name a directory")];
    const found = await protectionFault(path, { forbids: "read", mode: 0o700, rootUsesAny: true });
    if (found === undefined) return [ok(`DATA_DIR: ${path} is for its owner alone`)];
    const [what = found, remedy = "chmod 700"] = found.split(/: (?=ch(?:mod|own) )/);
    return [fault(`DATA_DIR: ${path} ${what}`, remedy)];
  } catch (error) {
    if (errorCode(error) === "ENOENT") return [ok(`DATA_DIR: ${path} is not there yet; the first start makes it`)];
    return [fault(`DATA_DIR: ${path} cannot be read (${errorCode(error)})`, "run this as the user of the service")];
  }
}

export async function checkAdminTokens(config: Config): Promise<readonly Finding[]> {
  const { ok, warning, fault } = reportOf("admin tokens");
  const findings: Finding[] = [];
  try {
    await loadAdminAccess([], config.adminTokensFile);
    if (config.adminTokensFile !== undefined)
      findings.push(ok(`ADMIN_TOKENS_FILE: ${config.adminTokensFile} is valid`));
  } catch (error) {
    if (!(error instanceof AdminTokensFault)) throw error;
    findings.push(fault(error.message, "correct the file; `session-service admin-token` makes entries"));
  }
  if (config.redis !== undefined && hasOwnToken(config)) {
    findings.push(
      warning(
        "each instance makes an admin token of its own: callers need the one of the instance that they reach",
        "set ADMIN_TOKENS or ADMIN_TOKENS_FILE, the same for all instances",
      ),
    );
  }
  if (!isLoopback(config.adminHost) && config.tlsCertFile === undefined) {
    findings.push(
      warning(
        `the admin API listens on ${config.adminHost} without TLS: admin tokens cross the network in clear text`,
        "set TLS_CERT_FILE and TLS_KEY_FILE, or let only a trusted network reach ADMIN_PORT",
      ),
    );
  }
  return findings.length > 0 ? findings : [ok(hasOwnToken(config) ? "the one in DATA_DIR" : "set by ADMIN_TOKENS")];
}

export const isLoopback = (host: string) => /^(localhost|127\.\d+\.\d+\.\d+|::1|\[::1\])$/.test(host);
