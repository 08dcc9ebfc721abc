import { readFile } from "node:fs/promises";
import type { Page } from "../../../platform/listener/pages.ts";

const FOLDER = new URL("page/", import.meta.url);

/** The content security policy. With Trusted Types, a text that the page displays cannot become a script. */
const POLICY = [
  ...["default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self'", "connect-src 'self'"],
  ...["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'"],
].join("; ");

const HEADERS = {
  "cache-control": "no-cache",
  "content-security-policy": POLICY,
  "cross-origin-opener-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-frame-options": "DENY",
};

/** Returns the script of the page from the published package. A clone of the repository has no bundled script, so it is bundled here. */
async function script(): Promise<string | Buffer> {
  try {
    return await readFile(new URL("main.js", FOLDER));
  } catch {
    const { buildConsolePage } = await import("./build.ts");
    return buildConsolePage();
  }
}

type Asset = { readonly type: string; readonly read: () => Promise<string | Buffer> };

const file = (type: string, name: string): Asset => ({ type, read: () => readFile(new URL(name, FOLDER)) });

const ASSETS: Readonly<Record<string, Asset>> = {
  "/console": file("text/html; charset=utf-8", "index.html"),
  "/console/style.css": file("text/css; charset=utf-8", "style.css"),
  "/console/icon.svg": file("image/svg+xml", "icon.svg"),
  "/console/main.js": { type: "text/javascript; charset=utf-8", read: script },
};

const NOT_BUILT: Page = {
  status: 503,
  type: "text/plain; charset=utf-8",
  body: "the console's page is not built: install the development dependencies, or use the package\n",
  headers: HEADERS,
};

/** Returns the file for a path. Each file is read once. */
export function consoleFiles(): (path: string) => Promise<Page> | undefined {
  const kept = new Map<string, Promise<Page>>();
  return (path) => {
    const asset = Object.hasOwn(ASSETS, path) ? ASSETS[path] : undefined;
    if (asset === undefined) return undefined;
    const { type, read } = asset;
    const page = kept.get(path) ?? read().then((body) => ({ status: 200, type, body, headers: HEADERS }));
    kept.set(path, page);
    return page.catch(() => {
      kept.delete(path); // After a failure, the next request reads the file again.
      return NOT_BUILT;
    });
  };
}
