import { existsSync, readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";

/**
 * Checks that the run sees all packages. By default buf runs a plugin once for each directory: each run then writes the document of one
 * package over that of another, of which buf only warns. Nothing in such a request tells that it is one of several, but buf.gen.yaml does.
 * @param files the files of the request
 * @throws Error with the line to add, if `buf.gen.yaml` of the working directory lacks it
 */
export function checkStrategy(files: readonly string[]): void {
  const path = resolve("buf.gen.yaml");
  if (new Set(files.map((file) => dirname(file))).size > 1 || !existsSync(path)) return;
  const entries = pluginEntries(readFileSync(path, "utf8")).filter((entry) => /\bhttp-openapi\b/.test(entry));
  if (entries.every((entry) => /\bstrategy["']?:\s*["']?all\b/.test(entry))) return;
  throw new Error(
    `${path}: the entry of protoc-gen-http-openapi needs the line "strategy: all". Without it buf runs the plugin for each directory, and ` +
      "the document of one package replaces that of another.",
  );
}

/** Returns the text of each item of the list `plugins`, without comments. */
function pluginEntries(yaml: string): string[] {
  const lines = yaml.split("\n").map((line) => line.replace(/(?:^|\s)#.*$/, "").trimEnd());
  const start = lines.findIndex((line) => /^["']?plugins["']?:/.test(line));
  const entries: string[] = [];
  let indent: number | undefined;
  for (const line of start === -1 ? [] : lines.slice(start + 1)) {
    if (/^[^\s-]/.test(line)) break;
    const item = /^(\s*)-/.exec(line)?.[1]?.length;
    indent ??= item;
    if (item !== undefined && item === indent) entries.push(line);
    else entries.push(`${entries.pop() ?? ""}\n${line}`);
  }
  return entries;
}
