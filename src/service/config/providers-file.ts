/** Loads SIGN_IN_PROVIDERS_FILE. */
import { type ProviderSettings, parseProviders } from "./providers.ts";
import { loadSettingsFile, type SettingsFile } from "./settings-file.ts";

export type ProvidersFile = SettingsFile<readonly ProviderSettings[]>;

/** @throws SettingsFileFault if the file cannot be used */
export const loadProviders = (path: string): Promise<ProvidersFile> => loadSettingsFile(path, parseProviders);
