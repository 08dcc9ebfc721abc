/** Adds the pages of a release to a published site, and makes its list of releases anew. */
import { cpSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** By this list the menus of all releases lead to each other (.vitepress/theme/version-menu.js). */
const LIST = "versions.json";

const inNumericOrder = new Intl.Collator("en", { numeric: true }).compare;

const pagesOf = (directory: string) =>
  readdirSync(directory, { recursive: true, encoding: "utf8" }).filter(
    (name) => name.endsWith(".html") && name !== "404.html",
  );

/** Puts the pages of a release below its version. The list, newest first, has the pages of each; the first address leads to the newest. */
export function addRelease(site: string, published: string, version: string): void {
  rmSync(join(published, version), { recursive: true, force: true });
  cpSync(site, join(published, version), { recursive: true });
  const versions = readdirSync(published)
    .filter((name) => /^\d+\.\d+\.\d+$/.test(name))
    .sort((a, b) => inNumericOrder(b, a));
  const list = Object.fromEntries(versions.map((name) => [name, pagesOf(join(published, name))]));
  writeFileSync(join(published, LIST), JSON.stringify(list));
  const redirect = `<meta http-equiv="refresh" content="0; url=${versions[0]}/">`;
  writeFileSync(join(published, "index.html"), `<!doctype html><title>Session service</title>${redirect}\n`);
}
