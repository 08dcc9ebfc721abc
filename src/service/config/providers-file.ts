/** Loads SIGN_IN_PROVIDERS_FILE. */
import { type ProviderSettings, parseProviders } from "./providers.ts";
import { loadSettingsFile, type SettingsFile } from "./settings-file.ts";

export type ProvidersFile = SettingsFile<readonly ProviderSettings[]>;

/** @param reserved names of claims that a session may not have @throws SettingsFileFault if the file cannot be used */
export function loadProviders(path: string, reserved: readonly string[]): Promise<ProvidersFile> {
  return loadSettingsFile(path, (text) => parseProviders(text, reserved));
}
