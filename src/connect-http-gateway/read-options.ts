import { type ParseArgsOptionsConfig, parseArgs } from "node:util";
import { nearest } from "../platform/spelling/nearest.ts";

/** Reads the options of a command line. @throws Error with a text for the user, which names the option that was probably meant */
export function readOptions<const Options extends ParseArgsOptionsConfig>(args: readonly string[], options: Options) {
  const given = { args: [...args], options };
  const { tokens } = parseArgs({ ...given, strict: false, tokens: true });
  for (const token of tokens) {
    if (token.kind !== "option" || Object.hasOwn(options, token.name)) continue;
    const meant = nearest(token.name, Object.keys(options));
    throw new Error(`there is no option ${token.rawName}: ${meant ? `did you mean --${meant}?` : "--help lists all"}`);
  }
  return parseArgs(given).values;
}
