/**
 * The description of the API: the OpenAPI document for programs, and a page that displays it. Exact paths, files read on first
 * use, nothing from another host.
 */
import { readFile } from "node:fs/promises";
import type { Request } from "../listener/exchange.ts";
import type { Page, Render } from "../listener/pages.ts";

const DOCUMENT = new URL("../../gen/openapi.json", import.meta.url);

/** Swagger UI sets styles by script alone and has its icons in the style sheet: nothing inline is needed. */
const POLICY = [
  ...["default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' data:", "connect-src 'self'"],
  ...["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"],
].join("; ");

const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Session service</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="docs/swagger-ui.css">
<script src="docs/swagger-ui-bundle.js" defer></script>
<script src="docs/start.js" defer></script>
</head>
<body>
<div id="reference"><noscript>This page needs JavaScript; <a href="openapi.json">openapi.json</a> has the same content.</noscript></div>
</body>
</html>
`;

/** Without `validatorUrl: null` Swagger UI would show the document's address to an online validator. */
const START = `SwaggerUIBundle({
  url: "openapi.json",
  domNode: document.getElementById("reference"),
  deepLinking: true,
  validatorUrl: null,
});
`;

const text = (type: string, body: string, headers?: Page["headers"]): Page => ({
  status: 200,
  type: `${type}; charset=utf-8`,
  body,
  headers: { "cache-control": "public, max-age=300", ...headers },
});

/** @param locate finds the file on first use */
async function file(type: string, maxAge: number, locate: () => string | URL): Promise<Page> {
  try {
    const body = await readFile(new URL(locate()));
    return { status: 200, type, body, headers: { "cache-control": `public, max-age=${maxAge}` } };
  } catch {
    return { status: 404, type: "text/plain", body: "swagger-ui-dist is not installed\n" };
  }
}

/** Reads a file once: all its responses share the bytes. One that cannot be read is tried again the next time. */
function once(read: () => Promise<Page>): Render {
  let kept: Promise<Page> | undefined;
  return () => {
    kept ??= read().then((page) => {
      if (page.status !== 200) kept = undefined;
      return page;
    });
    return kept;
  };
}

const asset = (type: string, name: string) =>
  once(() => file(type, 86_400, () => import.meta.resolve(`swagger-ui-dist/${name}`)));

const styles = asset("text/css; charset=utf-8", "swagger-ui.css");

async function page(request: Request): Promise<Page> {
  const needed = await styles(request);
  const headers = { "content-security-policy": POLICY, "referrer-policy": "no-referrer" };
  return needed.status === 200 ? text("text/html", PAGE, headers) : needed;
}

/** @param reference whether the page is wanted, not only the document */
export function docs(reference: boolean): [path: string, render: Render][] {
  const document: [string, Render] = ["/openapi.json", once(() => file("application/json", 300, () => DOCUMENT))];
  if (!reference) return [document];
  return [
    document,
    ["/docs", page],
    ["/docs/start.js", () => text("text/javascript", START)],
    ["/docs/swagger-ui-bundle.js", asset("text/javascript; charset=utf-8", "swagger-ui-bundle.js")],
    ["/docs/swagger-ui.css", styles],
  ];
}
