/** Loads a file of settings. If the file changes while the service runs, its new content is used. */
import type { Followed } from "../../platform/files/follow.ts";
import { loadProtected } from "../../platform/files/protected-file.ts";
import { SettingsFileFault } from "./file-members.ts";

export type SettingsFile<Content> = Followed<Content, SettingsFileFault>;

/** Returns settings that come from no file, and never change. */
export function withoutFile<Content>(current: Content): SettingsFile<Content> {
  return { current, watch: () => () => {} };
}

/** Other users may read the file, which has no secrets, but not write it. @throws SettingsFileFault if the file cannot be used */
export function loadSettingsFile<Content>(
  path: string,
  parse: (text: string) => Content,
): Promise<SettingsFile<Content>> {
  return loadProtected({ path, protection: { forbids: "write", mode: 0o644 }, parse, Fault: SettingsFileFault });
}
