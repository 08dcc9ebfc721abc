/** Reads the members of files of settings, such as SESSION_POLICIES_FILE. A message names the place in the file, and never repeats a value. */
import { nearest } from "../../platform/spelling/nearest.ts";

/** The file cannot be used. */
export class SettingsFileFault extends Error {
  override readonly name = "SettingsFileFault";
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
    throw new SettingsFileFault("the file: must be JSON");
  }
}

/** Returns the members of an object. @throws SettingsFileFault if it has others than `known` */
export function membersOf(at: string, value: unknown, known: readonly string[]): Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new SettingsFileFault(`${at}: must be an object`);
  }
  const unknown = Object.keys(value).find((name) => !known.includes(name));
  if (unknown === undefined) return value as Readonly<Record<string, unknown>>;
  const name = unknown.slice(0, MAX_NAME);
  const meant = nearest(name, known) ?? known.join(", ");
  throw new SettingsFileFault(`${at}: ${JSON.stringify(name)} is not known (known: ${meant})`);
}

/** Returns the list that a member has, parsed; an empty list if the member is absent. */
export function listOf<T>(at: string, value: unknown, parse: (at: string, item: unknown) => T): readonly T[] {
  if (value === undefined) return [];
  if (!Array.isArray(value)) throw new SettingsFileFault(`${at}: must be a list`);
  if (value.length > MAX_ENTRIES) throw new SettingsFileFault(`${at}: has more than ${MAX_ENTRIES} entries`);
  return value.map((item, index) => parse(`${at}[${index}]`, item));
}

/** Returns which of the texts a member has; undefined if the member is absent. */
export function oneOfTexts<T extends string>(at: string, value: unknown, texts: readonly T[]): T | undefined {
  if (value === undefined) return undefined;
  const found = texts.find((text) => text === value);
  if (found === undefined) throw new SettingsFileFault(`${at}: must be one of ${texts.join(", ")}`);
  return found;
}

/** Returns a text of 1 to 255 bytes without control characters; undefined if the member is absent. */
export function textOf(at: string, value: unknown): string | undefined {
  if (value === undefined) return undefined;
  const isText = typeof value === "string" && value !== "" && Buffer.byteLength(value) <= 255 && !/\p{Cc}/u.test(value);
  if (!isText) throw new SettingsFileFault(`${at}: must be a text of 1 to 255 bytes without control characters`);
  return value;
}
