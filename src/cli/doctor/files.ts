/** Checks the files that hold secrets or grant rights. */
import { stat } from "node:fs/promises";
import { hasOwnAdminToken } from "../../config/admin.ts";
import type { Config } from "../../config/config.ts";
import { isLoopback } from "../../config/loopback.ts";
import { errorCode } from "../../platform/files/error-code.ts";
import { protectionFault } from "../../platform/files/protection.ts";
import { loadAdminAccess } from "../../tokens/admin-access.ts";
import { AdminTokensFault } from "../../tokens/admin-entries.ts";
import type { Report } from "./finding.ts";

export async function checkDataDir({ ok, fault }: Report, config: Config): Promise<void> {
  if (config.redis !== undefined && !hasOwnAdminToken(config)) return;
  const path = config.dataDir;
  try {
    const isDirectory = (await stat(path)).isDirectory();
    const found = await protectionFault(path, { forbids: "read", mode: 0o700, rootUsesAny: true });
    const [what, remedy = "chmod 700"] = found?.split(/: (?=ch(?:mod|own) )/) ?? [];
    if (!isDirectory) fault(`DATA_DIR: ${path} is no directory`, "name a directory");
    else if (what === undefined) ok(`DATA_DIR: ${path} is for its owner alone`);
    else fault(`DATA_DIR: ${path} ${what}`, remedy);
  } catch (error) {
    if (errorCode(error) === "ENOENT") ok(`DATA_DIR: ${path} is not there yet; the first start makes it`);
    else fault(`DATA_DIR: ${path} cannot be read (${errorCode(error)})`, "run this as the user of the service");
  }
}

export async function checkAdminTokens(report: Report, config: Config): Promise<void> {
  try {
    await loadAdminAccess([], config.adminTokensFile);
    if (config.adminTokensFile !== undefined) report.ok(`ADMIN_TOKENS_FILE: ${config.adminTokensFile} is valid`);
  } catch (error) {
    if (!(error instanceof AdminTokensFault)) throw error;
    report.fault(error.message, "correct the file; `session-service admin-token` makes entries");
  }
  if (config.redis !== undefined && hasOwnAdminToken(config)) {
    report.warning(
      "each instance makes an admin token of its own: callers need the one of the instance that they reach",
      "set ADMIN_TOKENS or ADMIN_TOKENS_FILE, the same for all instances",
    );
  }
  if (!isLoopback(config.adminHost) && config.tlsCertFile === undefined) {
    report.warning(
      `the admin API listens on ${config.adminHost} without TLS: admin tokens cross the network in clear text`,
      "set TLS_CERT_FILE and TLS_KEY_FILE, or let only a trusted network reach ADMIN_PORT",
    );
  }
  if (report.findings.length === 0) report.ok(hasOwnAdminToken(config) ? "the one in DATA_DIR" : "set by ADMIN_TOKENS");
}
