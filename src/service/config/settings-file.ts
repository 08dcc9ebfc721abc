/**
 * Files of settings, such as SESSION_POLICIES_FILE. A message names the place in the file, and never repeats a value. A file that changes
 * while the service runs takes effect.
 */
import type { Followed } from "../../platform/files/follow.ts";
import { loadProtected } from "../../platform/files/protected-file.ts";
import { nearest } from "../../platform/spelling/nearest.ts";

export class SettingsFileFault extends Error {
  override readonly name = "SettingsFileFault";
}

/** @param at a place in the file @throws SettingsFileFault */
export function fault(at: string, what: string): never {
  throw new SettingsFileFault(`${at}: ${what}`);
}

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

/** How many entries a list of the file may have. */
const MAX_ENTRIES = 100;
/** How much of an unknown name a message repeats, in UTF-16 code units. */
const MAX_NAME = 40;

/** @throws SettingsFileFault */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The parser's own message is left out, because it quotes the text.
    return fault("the file", "must be JSON");
  }
}

/** Returns the members of an object. @throws SettingsFileFault if it has others than `known` */
export function membersOf(at: string, value: unknown, known: readonly string[]): Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return fault(at, "must be an object");
  }
  const unknown = Object.keys(value).find((name) => !known.includes(name));
  if (unknown === undefined) return value as Readonly<Record<string, unknown>>;
  const name = unknown.slice(0, MAX_NAME);
  const meant = nearest(name, known) ?? known.join(", ");
  return fault(at, `${JSON.stringify(name)} is not known (known: ${meant})`);
}

/** Returns the list that a member has, parsed; an empty list if the member is absent. */
export function listOf<T>(at: string, value: unknown, parse: (at: string, item: unknown) => T): readonly T[] {
  if (value === undefined) return [];
  if (!Array.isArray(value)) return fault(at, "must be a list");
  if (value.length > MAX_ENTRIES) return fault(at, `has more than ${MAX_ENTRIES} entries`);
  return value.map((item, index) => parse(`${at}[${index}]`, item));
}

/** Returns which of the texts a member has; undefined if the member is absent. */
export function oneOfTexts<T extends string>(at: string, value: unknown, texts: readonly T[]): T | undefined {
  if (value === undefined) return undefined;
  const found = texts.find((text) => text === value);
  if (found === undefined) return fault(at, `must be one of ${texts.join(", ")}`);
  return found;
}

/** Returns a text of 1 to 255 bytes without control characters; undefined if the member is absent. */
export function textOf(at: string, value: unknown): string | undefined {
  if (value === undefined) return undefined;
  const isText = typeof value === "string" && value !== "" && Buffer.byteLength(value) <= 255 && !/\p{Cc}/u.test(value);
  if (!isText) return fault(at, "must be a text of 1 to 255 bytes without control characters");
  return value;
}

/** Works as `textOf` for a member that must be there. */
export function required(at: string, value: unknown): string {
  return textOf(at, value) ?? fault(at, "is required");
}

/** Returns whether a member is true; false if it is absent. */
export function flagOf(at: string, value: unknown = false): boolean {
  return typeof value === "boolean" ? value : fault(at, "must be true or false");
}

/** Refuses a value that is in a list twice. @param nameOf returns the name of the place with an index */
export function requireUnique(values: readonly string[], nameOf: (index: number) => string): void {
  const twice = values.findIndex((value, index) => values.indexOf(value) !== index);
  if (twice !== -1) fault(nameOf(twice), "is there twice");
}
