/** Loads a file of settings. If the file changes while the service runs, its new content is used. */
import { type Followed, loadFollowed } from "../../platform/files/follow.ts";
import { readProtected } from "../../platform/files/protection.ts";
import { SettingsFileFault } from "./file-members.ts";

export type SettingsFile<Content> = Followed<Content, SettingsFileFault>;

/** Returns settings that come from no file, and never change. */
export function withoutFile<Content>(current: Content): SettingsFile<Content> {
  return { current, watch: () => () => {} };
}

/** @throws SettingsFileFault if the file cannot be used */
export function loadSettingsFile<Content>(
  path: string,
  parse: (text: string) => Content,
): Promise<SettingsFile<Content>> {
  return loadFollowed({
    path,
    read: () => readSettings(path),
    parse: (text) => parseAt(path, text, parse),
    faultOf: (error) => (error instanceof SettingsFileFault ? error : faultAt(path, "cannot be used")),
  });
}

/** Other users may read the file, which has no secrets, but not write it. */
async function readSettings(path: string): Promise<string> {
  const read = await readProtected(path, { forbids: "write", mode: 0o644 });
  if (!read.ok) throw faultAt(path, read.fault);
  return read.text;
}

function parseAt<Content>(path: string, text: string, parse: (text: string) => Content): Content {
  try {
    return parse(text);
  } catch (error) {
    throw error instanceof SettingsFileFault ? faultAt(path, error.message) : error;
  }
}

const faultAt = (path: string, what: string) => new SettingsFileFault(`${path}: ${what}`);
