/** A tree of the project with a version and pages of its own, whose site is built in a moment. */
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

const ROOT = join(import.meta.dirname, "../..");
const SITE = "deploy/site";
/** What a build makes in `deploy/site`, beside the dependencies, to which the tree has a link. */
const BUILT = ["node_modules", "pages", "cache", ".temp"];

/** @param pages their texts, by their paths below `docs`, all named by `README.md` */
export function makeTree(tree: string, version: string, pages: Readonly<Record<string, string>>): void {
  cpSync(join(ROOT, SITE), join(tree, SITE), {
    recursive: true,
    filter: (path) => !BUILT.some((name) => path.endsWith(`/${name}`)),
  });
  symlinkSync(join(ROOT, SITE, "node_modules"), join(tree, SITE, "node_modules"));
  const { repository } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  const list = ["# Documentation\n\n## Pages\n", ...Object.keys(pages).map((path) => `- [Page](${path})`)].join("\n");
  const api = JSON.stringify({ info: {}, paths: {} });
  const files = { ...pages, "README.md": list };
  for (const [path, text] of [
    ["package.json", JSON.stringify({ version, repository })],
    ["gen/openapi.json", api],
    ["gen/openapi-admin.json", api],
    ...Object.entries(files).map(([name, page]) => [`docs/${name}`, page]),
  ] as const) {
    mkdirSync(dirname(join(tree, path)), { recursive: true });
    writeFileSync(join(tree, path), text);
  }
}
