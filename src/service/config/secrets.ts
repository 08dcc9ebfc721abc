/**
 * Reads settings that may hold a secret. Each can be given by a file as well, as orchestrators mount secrets: the variable of the same name
 * with `_FILE` names it. White space around the content is ignored.
 */
import { readFileSync, statSync } from "node:fs";
import type { AddFault, Read } from "./reader.ts";
import { invalid, type Parse, type Parsed, unreadable } from "./values.ts";

/** The largest file that is read as a setting, in bytes. */
const MAX_BYTES = 65_536;

/** @param parseFile reads the setting from the file at a path */
export function readSecret<T>(
  read: Read,
  addFault: AddFault,
  name: string,
  parse: Parse<T>,
  parseFile: Parse<T> = (path) => readSecretFile(path, parse),
): T | undefined {
  const given = read(name, parse, undefined);
  const filed = read(`${name}_FILE`, parseFile, undefined);
  if (given !== undefined && filed !== undefined) addFault(`${name} and ${name}_FILE exclude each other`);
  return given ?? filed;
}

export function readSecretFile<T>(path: string, parse: Parse<T>): Parsed<T> {
  let text: string;
  try {
    const { size } = statSync(path);
    if (size > MAX_BYTES) return invalid(`names a file that is larger than ${MAX_BYTES} bytes`);
    text = readFileSync(path, "utf8").trim();
  } catch (error) {
    return unreadable(error);
  }
  if (text === "") return invalid("names a file that is empty");
  const parsed = parse(text);
  return parsed.ok ? parsed : invalid(`names a file whose content ${parsed.reason}`);
}
