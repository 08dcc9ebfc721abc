/** Decides which token a command presents, and to which service. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { errorCode } from "../../../platform/files/error-code.ts";
import type { CommandLineConfig } from "../../config/command-line.ts";
import { DATA_FILES } from "../../config/data-dir.ts";
import { isLoopback } from "../../config/loopback.ts";
import { adminToken } from "../../config/values.ts";
import { CommandError, EXIT } from "../context.ts";
import { inputName, readText } from "../input.ts";
import type { ConnectionOptions } from "./options.ts";

/** A token, the name of its source for error messages, and advice for the user if the token is refused. */
export type AdminCredential = { readonly token: string; readonly from: string; readonly remedy?: string };

const OTHER_TOKENS =
  "a service with ADMIN_TOKENS or ADMIN_TOKENS_FILE takes only those: set ADMIN_TOKEN or give --token-file";

/**
 * Returns the token to present; undefined with a client certificate and no token. The token of a service on this machine is presented only
 * to this machine, in case `--url` names another one by mistake. @throws CommandError
 */
export function readCredential(
  url: string,
  options: ConnectionOptions,
  config: CommandLineConfig,
): AdminCredential | undefined {
  if (options.tokenFile !== undefined) return fromFile(options.tokenFile);
  if (config.adminToken !== undefined) return { token: config.adminToken, from: "ADMIN_TOKEN" };
  if (options.cert !== undefined) return undefined;
  const isLocal = isLoopback(new URL(url).hostname);
  const local = isLocal ? localCredential(config) : undefined;
  if (local !== undefined) return local;
  throw new CommandError(
    "an admin token is needed: set ADMIN_TOKEN or give --token-file" +
      (isLocal
        ? ` (there is no ${join(config.local.dataDir, DATA_FILES.adminToken)}: is this the directory of the service?)`
        : ""),
    EXIT.notAllowed,
  );
}

function fromFile(path: string): AdminCredential {
  const from = inputName(path);
  const token = adminToken(readText(path, "--token-file: ").trim());
  if (!token.ok) throw new CommandError(`--token-file: ${from} ${token.reason}`);
  return { token: token.value, from };
}

function localCredential({ local }: CommandLineConfig): AdminCredential | undefined {
  const [configured] = local.adminTokens ?? [];
  if (configured !== undefined) return { token: configured, from: "ADMIN_TOKENS" };
  const path = join(local.dataDir, DATA_FILES.adminToken);
  try {
    return { token: readFileSync(path, "utf8").trim(), from: path, remedy: OTHER_TOKENS };
  } catch (error) {
    if (errorCode(error) === "ENOENT") return undefined;
    throw new CommandError(`${path} cannot be read (${errorCode(error)}): set ADMIN_TOKEN or give --token-file`);
  }
}
