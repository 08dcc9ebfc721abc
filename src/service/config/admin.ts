import type { AddFault, Read } from "./reader.ts";
import { adminToken, boolean, list, oneOf, readableFile } from "./values.ts";

/** The service generates an admin token of its own only if no other is configured. */
export const hasOwnAdminToken = ({ adminTokens, adminTokensFile }: Partial<ReturnType<typeof readAdmin>>) =>
  adminTokens === undefined && adminTokensFile === undefined;

export function readAdmin(read: Read, addFault: AddFault) {
  const console = read("CONSOLE", oneOf("on", "off"), "on" as const);
  const consoleProviderFile = read("CONSOLE_PROVIDER_FILE", readableFile, undefined);
  if (console === "off" && consoleProviderFile !== undefined) addFault("CONSOLE_PROVIDER_FILE needs CONSOLE=on");
  return {
    /** The tokens that have every scope. */
    adminTokens: read("ADMIN_TOKENS", list(adminToken), undefined),
    adminTokensFile: read("ADMIN_TOKENS_FILE", readableFile, undefined),
    /** Whether `/metrics` requires a credential with the scope `metrics`. */
    metricsAuth: read("METRICS_AUTH", boolean, false),
    console,
    consoleProviderFile,
  };
}
