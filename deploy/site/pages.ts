/** Prepares the pages of docs/ for VitePress: their order and titles, the links that lead out of docs/, and pages of the two APIs. */
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { apiPage, type OpenApiDocument } from "./api.ts";

const ROOT = join(import.meta.dirname, "../..");
const DOCS = join(ROOT, "docs");
/** What VitePress reads. It is written anew by each build. */
const PAGES = join(import.meta.dirname, "pages");
/** The list of pages, from which the order of the site follows. It becomes the first page. */
const LIST = "README.md";

type Entry = { readonly text: string; readonly link: string };
type Group = { readonly text: string; readonly items: readonly Entry[] };
/** What the configuration of VitePress needs to know of the pages (.vitepress/config.js). */
type Site = { readonly version: string; readonly repository: string; readonly groups: readonly Group[] };

const APIS = [
  { file: "openapi.json", page: "api/public.md", title: "Public API" },
  { file: "openapi-admin.json", page: "api/admin.md", title: "Admin API" },
] as const;

/** Returns the address of the site for a page. */
const linkOf = (page: string) => `/${page.replace(/\.md$/, "")}`;

function titleOf(page: string): string {
  const [, title = page] = /^# (.+)$/m.exec(readFileSync(join(DOCS, page), "utf8")) ?? [];
  return title.replaceAll("`", "");
}

/** Returns the groups of the list of pages, with the titles of the pages. */
function groupsOf(list: string): Group[] {
  const [, ...sections] = list.split(/^## /m);
  return sections.map((section) => {
    const [text = ""] = section.split("\n", 1);
    const pages = [...section.matchAll(/\]\(([^)#]+\.md)\)/g)].map(([, page = ""]) => page);
    return { text, items: pages.map((page) => ({ text: titleOf(page), link: linkOf(page) })) };
  });
}

/** Replaces links to files outside of docs/, which are no pages of the site, by links to the repository. */
function withLinks(page: string, text: string, repository: string): string {
  return text.replaceAll(/\]\(((?:\.\.?\/)[^)\s#]*)(#[^)\s]*)?\)/g, (link, path: string, anchor = "") => {
    const target = relative(ROOT, join(DOCS, dirname(page), path));
    return target.startsWith("docs/") ? link : `](${repository}/blob/main/${target}${anchor})`;
  });
}

/** Writes the pages and what the configuration needs to know of them, which it returns. */
export function preparePages(): Site {
  const { version, repository } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  const url: string = repository.url.replace(/^git\+/, "").replace(/\.git$/, "");
  rmSync(PAGES, { recursive: true, force: true });
  cpSync(DOCS, PAGES, { recursive: true });
  for (const page of readdirSync(DOCS, { recursive: true, encoding: "utf8" })) {
    if (page.endsWith(".md"))
      writeFileSync(join(PAGES, page), withLinks(page, readFileSync(join(DOCS, page), "utf8"), url));
  }
  mkdirSync(join(PAGES, "api"));
  for (const { file, page, title } of APIS) {
    const document: OpenApiDocument = JSON.parse(readFileSync(join(ROOT, "gen", file), "utf8"));
    writeFileSync(join(PAGES, page), apiPage(title, document));
  }
  const apis = APIS.map(({ page, title }) => ({ text: title, link: linkOf(page) }));
  const groups = [...groupsOf(readFileSync(join(DOCS, LIST), "utf8")), { text: "API", items: apis }];
  const site: Site = { version, repository: url, groups };
  writeFileSync(join(PAGES, "site.json"), JSON.stringify(site));
  // The program that draws pictures is loaded by the pages that have some. Its modules are copied as they are: bundling them takes long.
  const mermaid = join(import.meta.dirname, "node_modules/mermaid/dist");
  for (const name of ["mermaid.esm.min.mjs", "chunks/mermaid.esm.min"]) {
    cpSync(join(mermaid, name), join(PAGES, "public/mermaid", name), {
      recursive: true,
      filter: (path) => !path.endsWith(".map"),
    });
  }
  return site;
}
