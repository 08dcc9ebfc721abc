import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitepress";

const { version, repository, groups } = JSON.parse(
  readFileSync(new URL("../pages/site.json", import.meta.url), "utf8"),
);

/** Returns the anchor of a heading, as GitHub makes it: links in the pages hold on both. */
const anchorOf = (title) =>
  title
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
    .replaceAll(" ", "-");

const escapeAttribute = (text) => text.replaceAll("&", "&amp;").replaceAll('"', "&quot;").replaceAll("<", "&lt;");

/** Draws pictures, each named by the heading above it, and makes tables fit for the keyboard and for readers of screens. */
function extend(markdown) {
  const fence = markdown.renderer.rules.fence;
  markdown.renderer.rules.fence = (tokens, index, ...more) => {
    const { info, content } = tokens[index];
    if (info.trim() !== "mermaid") return fence(tokens, index, ...more);
    const heading = tokens.slice(0, index).findLastIndex(({ type }) => type === "heading_open");
    const name = tokens[heading + 1].children.map((child) => child.content).join("");
    return `<MermaidPicture code="${encodeURIComponent(content)}" name="${escapeAttribute(name)}" />`;
  };
  markdown.renderer.rules.table_open = () => '<table tabindex="0">\n';
  // A table may have columns without a name: their head is an ordinary cell.
  markdown.core.ruler.push("empty_heads", ({ tokens }) => {
    for (const [index, { type }] of tokens.entries()) {
      if (type !== "th_open" || tokens[index + 1].content !== "") continue;
      tokens[index].tag = "td";
      tokens[index + 2].tag = "td";
    }
  });
}

export default defineConfig({
  srcDir: "pages",
  outDir: "../../dist/site",
  title: "Session service",
  description: "Refreshes and ends the sessions of users",
  lang: "en",
  cleanUrls: false,
  rewrites: { "README.md": "index.md" },
  ignoreDeadLinks: "localhostLinks",
  markdown: {
    anchor: { slugify: anchorOf },
    config: extend,
    theme: { light: "github-light-high-contrast", dark: "github-dark-high-contrast" },
  },
  vite: {
    resolve: {
      alias: [
        {
          find: /^.*\/VPLocalSearchBox\.vue$/,
          replacement: fileURLToPath(new URL("theme/search-box.js", import.meta.url)),
        },
      ],
    },
  },
  themeConfig: {
    nav: [
      ...groups.map(({ text, items }) => ({
        text: text.split(" ")[0],
        link: items[0].link,
        activeMatch: items[0].link.replace(/[^/]*$/, ""),
      })),
      { component: "VersionMenu", props: { version, changelog: `${repository}/blob/main/CHANGELOG.md` } },
    ],
    sidebar: groups,
    outline: { level: [2, 3] },
    search: { provider: "local" },
    editLink: { text: "Edit this page", pattern: `${repository}/edit/main/docs/:path` },
  },
});
