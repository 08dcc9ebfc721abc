import { join } from "node:path";
import { makeDirectory } from "../../platform/files/make-directory.ts";
import { protectionFault } from "../../platform/files/protection.ts";
import { hasOwnAdminToken } from "../config/admin.ts";
import type { Config } from "../config/config.ts";
import { DATA_DIR_PROTECTION, DATA_FILES } from "../config/data-dir.ts";
import { loadSessionPolicies, NO_POLICIES, type SessionPoliciesFile } from "../config/session-policies.ts";
import { systemClock } from "../session/time.ts";
import { type FollowedAdminAccess, type FullToken, loadAdminAccess } from "../tokens/admin-access.ts";
import { AdminTokensFault } from "../tokens/admin-entries.ts";
import { type EventKeyFile, loadEventKeys } from "../tokens/event-keys.ts";
import { type KeyRing, loadKeyRing, loadOrCreateKeyRing } from "../tokens/key-ring.ts";
import { AdminTokenFault, ownAdminToken } from "../tokens/own-admin-token.ts";
import { KeyRingFault } from "../tokens/ring.ts";
import { embeddedFile } from "./open-store.ts";
import { startError } from "./start-error.ts";

/** Creates DATA_DIR (0700) if something is to be kept in it. @throws StartError if other users can access its contents */
export async function prepareDataDir(config: Config): Promise<void> {
  if (config.redis !== undefined && !hasOwnAdminToken(config)) return;
  const path = config.dataDir;
  try {
    makeDirectory(path);
    const fault = await protectionFault(path, DATA_DIR_PROTECTION);
    if (fault !== undefined) throw new Error(`the directory ${path} ${fault}`);
  } catch (error) {
    throw startError(error, "DATA_DIR");
  }
}

/** @throws StartError */
export function openKeyRing({ redis, keysFile, signingAlgorithm: alg, dataDir }: Config): Promise<KeyRing> {
  const hasSessions = async () => {
    const { holdsSessions } = await import("../store/embedded/holds-sessions.ts");
    return holdsSessions(embeddedFile({ dataDir }), systemClock);
  };
  const opening =
    redis !== undefined ? loadKeyRing(keysFile) : loadOrCreateKeyRing(keysFile, { alg, now: Date.now(), hasSessions });
  return opening.catch(orStartError("KEYS_FILE", KeyRingFault));
}

/** Reads the RSA keys of security event tokens; undefined if the key ring signs them. @throws StartError */
export async function openEventKeys(config: Config): Promise<EventKeyFile | undefined> {
  const path = config.signals ? config.signalsRsaKeyFile : undefined;
  return path === undefined ? undefined : loadEventKeys(path).catch(orStartError("SIGNALS_RSA_KEY_FILE"));
}

/** @throws StartError */
export async function openAdminAccess(config: Config): Promise<FollowedAdminAccess> {
  const fullTokens = config.adminTokens?.map((token, index) => ({ name: `ADMIN_TOKENS[${index}]`, token }));
  try {
    const own = hasOwnAdminToken(config) ? [await readOwnAdminToken(config)] : [];
    return await loadAdminAccess(fullTokens ?? own, config.adminTokensFile);
  } catch (error) {
    throw error instanceof AdminTokensFault ? startError(error, "ADMIN_TOKENS_FILE") : error;
  }
}

/** Reads the policies of sessions. @throws StartError */
export async function openSessionPolicies(config: Config): Promise<SessionPoliciesFile> {
  const path = config.sessionPoliciesFile;
  return path === undefined
    ? NO_POLICIES
    : loadSessionPolicies(path, config).catch(orStartError("SESSION_POLICIES_FILE"));
}

async function readOwnAdminToken({ dataDir }: Config): Promise<FullToken> {
  const token = await ownAdminToken(join(dataDir, DATA_FILES.adminToken)).catch(
    orStartError("DATA_DIR", AdminTokenFault),
  );
  return { name: `DATA_DIR/${DATA_FILES.adminToken}`, token };
}

/** Makes a StartError that names the environment variable. @param Complete errors of this class name the file, and need no variable */
export const orStartError =
  (variable: string, Complete?: abstract new (...given: never[]) => Error) =>
  (error: unknown): never => {
    throw startError(error, Complete && error instanceof Complete ? undefined : variable);
  };
