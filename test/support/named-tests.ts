/** Finds tests that a document names, such as `` `test/a.test.ts`: "title" ``. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

const ROOT = join(import.meta.dirname, "../..");

/** Returns each test that the text names, as its file and its title or a part of the title. */
export function namedTests(text: string): { readonly file: string; readonly title: string }[] {
  return [...text.matchAll(/`(test\/[^`]+)`: "([^"]+)"/g)].map(([, file = "", title = ""]) => ({ file, title }));
}

/** Returns the named tests that do not exist. */
export function missingTests(text: string): string[] {
  return namedTests(text)
    .filter(
      ({ file, title }) => !existsSync(join(ROOT, file)) || !readFileSync(join(ROOT, file), "utf8").includes(title),
    )
    .map(({ file, title }) => `${file}: ${title}`);
}

/** Returns the rows of the Markdown table below a heading of a document, as cells. */
export function tableRows(text: string, heading: string): string[][] {
  const section = text.split(/^#{2,4} /m).find((part) => part.startsWith(`${heading}\n`)) ?? "";
  const rows = section.split("\n").filter((line) => line.startsWith("| ") && !line.startsWith("|---"));
  return rows.slice(1).map((row) =>
    row
      .slice(1, -1)
      .split(" | ")
      .map((cell) => cell.trim()),
  );
}
