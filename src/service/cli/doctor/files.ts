/** Checks the files that hold secrets or grant rights, and the embedded store with its disk space. */
import { access, constants, stat, statfs } from "node:fs/promises";
import { join } from "node:path";
import { errorCode, errorMessage } from "../../../platform/files/error-code.ts";
import { protectionFault } from "../../../platform/files/protection.ts";
import { hasOwnAdminToken } from "../../config/admin.ts";
import type { Config } from "../../config/config.ts";
import { loadConsoleProvider } from "../../config/console-provider.ts";
import { DATA_DIR_PROTECTION, DATA_FILES } from "../../config/data-dir.ts";
import { isLoopback } from "../../config/loopback.ts";
import { loadProviders } from "../../config/providers.ts";
import { loadSessionPolicies } from "../../config/session-policies.ts";
import { SettingsFileFault } from "../../config/settings-file.ts";
import { AUTHENTICATION_CLAIMS, RESERVED_CLAIMS } from "../../session/claims.ts";
import { loadAdminAccess } from "../../tokens/admin-access.ts";
import { AdminTokensFault } from "../../tokens/admin-entries.ts";
import type { Report } from "./finding.ts";

export async function checkDataDir({ ok, fault }: Report, config: Config): Promise<void> {
  if (config.redis !== undefined && !hasOwnAdminToken(config)) return;
  const path = config.dataDir;
  try {
    const isDirectory = (await stat(path)).isDirectory();
    const found = await protectionFault(path, { ...DATA_DIR_PROTECTION, rootUsesAny: true });
    const [what, remedy = "chmod 700"] = found?.split(/: (?=ch(?:mod|own) |name )/) ?? [];
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

export async function checkPolicies(report: Report, config: Config): Promise<void> {
  const path = config.sessionPoliciesFile;
  if (path === undefined) return;
  try {
    const { current } = await loadSessionPolicies(path, config);
    report.ok(`SESSION_POLICIES_FILE: ${path} is valid`);
    const clients = current.tokenExchange.map(({ clientId }) => clientId);
    if (clients.length > 0) await checkExchangeClients(report, config, clients);
  } catch (error) {
    if (!(error instanceof SettingsFileFault)) throw error;
    report.fault(`SESSION_POLICIES_FILE: ${error.message}`, "correct the file (docs/reference/limits.md)");
  }
}

export async function checkProviders(report: Report, config: Config): Promise<void> {
  const { signInProvidersFile: users, consoleProviderFile: operators } = config;
  const check = async (file: string, path: string, page: string, load: () => Promise<readonly { name: string }[]>) => {
    try {
      const names = (await load()).map(({ name }) => name);
      report.ok(`${file}: ${path} is valid, providers: ${names.join(", ")}`);
    } catch (error) {
      if (!(error instanceof SettingsFileFault)) throw error;
      report.fault(`${file}: ${error.message}`, `correct the file (docs/tasks/${page})`);
    }
  };
  if (users !== undefined) {
    const reserved = [...RESERVED_CLAIMS, ...AUTHENTICATION_CLAIMS];
    await check(
      "SIGN_IN_PROVIDERS_FILE",
      users,
      "sign-in.md",
      async () => (await loadProviders(users, reserved)).current,
    );
  }
  if (operators !== undefined) {
    const load = async () => [(await loadConsoleProvider(operators)).current];
    await check("CONSOLE_PROVIDER_FILE", operators, "console.md", load);
  }
}

/** A client of the token exchange authenticates by a credential of its name. */
async function checkExchangeClients({ warning }: Report, config: Config, clients: readonly string[]): Promise<void> {
  const access = await loadAdminAccess([], config.adminTokensFile).catch((error) => {
    if (error instanceof AdminTokensFault) return undefined; // checkAdminTokens reports it.
    throw error;
  });
  for (const client of clients.filter((name) => access?.grants(name, "tokens:exchange") === false)) {
    warning(
      `token_exchange names ${client}, and no credential of this name has the scope tokens:exchange: it gets 401`,
      `session-service admin-token create --name ${client} --scope tokens:exchange`,
    );
  }
}

/** The free space, in bytes, below which the store may soon refuse writes. */
const MIN_FREE_BYTES = 256 * 1024 * 1024;
/** The free space, in bytes, with which the store cannot open its files. */
const FULL_BYTES = 64 * 1024;

/** The result code of SQLite for a file that is not a database (sqlite.org/rescode.html). */
const SQLITE_NOTADB = 26;
const RESTORE = "stop the service, and restore a backup (session-service restore)";

export async function checkEmbedded(report: Report, config: Config): Promise<void> {
  if (config.redis !== undefined) return;
  const path = join(config.dataDir, DATA_FILES.store);
  let canWrite = true;
  for (const file of [config.dataDir, path, `${path}-wal`, `${path}-shm`]) {
    canWrite = (await checkWritable(report, file)) && canWrite;
  }
  // SQLite makes files beside one that it reads, with the same mode, so the service could not write those either.
  if (canWrite) await checkFile(report, path);
  await checkSpace(report, config.dataDir);
}

/** A file of another user, or on a disk that is mounted for reading alone, can be read well enough to seem whole. */
async function checkWritable(report: Report, path: string): Promise<boolean> {
  try {
    await access(path, constants.W_OK);
    return true;
  } catch (error) {
    const code = errorCode(error);
    if (code === "ENOENT") return true; // The service makes it.
    const remedy = code === "EROFS" ? "mount its disk for writing" : "give it to the user of the service (chown)";
    report.fault(`${path} cannot be written (${code})`, remedy);
    return false;
  }
}

async function checkFile(report: Report, path: string): Promise<void> {
  const { checkDatabase } = await import("../../store/embedded/check.ts");
  try {
    const problem = checkDatabase(path);
    if (problem === "absent") report.ok(`there is no ${path} yet; the first start makes it`);
    else if (problem === undefined) report.ok(`${path} is whole`);
    else report.fault(`${path} is damaged: ${problem}`, RESTORE);
  } catch (error) {
    const isDatabase = !(error instanceof Error && "errcode" in error && error.errcode === SQLITE_NOTADB);
    const remedy = isDatabase ? "run this as the user of the service" : RESTORE;
    report.fault(`${path} cannot be read (${errorMessage(error)})`, remedy);
  }
}

async function checkSpace(report: Report, directory: string): Promise<void> {
  try {
    const { bavail, bsize } = await statfs(directory);
    judgeSpace(report, bavail * bsize);
  } catch (error) {
    if (errorCode(error) !== "ENOENT") throw error; // The directory does not exist yet.
  }
}

/** @param free in bytes */
export function judgeSpace(report: Pick<Report, "warning" | "fault">, free: number): void {
  if (free >= MIN_FREE_BYTES) return;
  if (free < FULL_BYTES) {
    report.fault("the disk of DATA_DIR is full: the service does not start, and refreshes get 503", "free space");
    return;
  }
  const found = `${Math.floor(free / 1024 / 1024)} MiB are free for DATA_DIR: refreshes get 503 when the disk is full`;
  report.warning(found, "free space");
}
