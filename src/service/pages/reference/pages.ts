/** Serves the description of the API: the OpenAPI document for programs, and a page that displays it. */
import { readFile } from "node:fs/promises";
import type { HttpRequest } from "../../../platform/listener/handler.ts";
import type { Page, Render } from "../../../platform/listener/pages.ts";

/** The content security policy. It allows nothing inline: Swagger UI sets styles only by script, and has its icons in the style sheet. */
const POLICY = [
  ...["default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' data:", "connect-src 'self'"],
  ...["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"],
].join("; ");

type ReferenceOptions = {
  readonly api: "public" | "admin";
  /** Whether the page that displays the API is served, too. If not, only the OpenAPI document is served. */
  readonly page: boolean;
  /** Whether the page offers to sign in as any user (sign-in.ts). */
  readonly signIn: boolean;
};

const DOCUMENTS = { public: "openapi.json", admin: "openapi-admin.json" } as const;
const NAMES = { public: "Public API", admin: "Admin API" } as const;
const TOKENS = { public: "Access token", admin: "Admin token" } as const;

const html = ({ api, signIn }: ReferenceOptions) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Session service: ${NAMES[api]}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="docs/swagger-ui.css">
<link rel="stylesheet" href="docs/reference.css">
<script src="docs/swagger-ui-bundle.js" defer></script>
<script src="docs/reference.js" defer></script>
</head>
<body data-api="${api}" data-sign-in="${signIn}">
<header>
<b>Session service: ${NAMES[api]}</b>
<form id="sign-in" hidden><label for="subject">Sign in as</label><input id="subject" value="alice" required maxlength="255"><button>Sign in</button></form>
<label>${TOKENS[api]} <input id="token" type="password" autocomplete="off" placeholder="sent with every request"></label>
<p id="status" role="status"></p>
</header>
<nav id="operations" aria-label="Operations"></nav>
<main id="reference"><noscript>This page needs JavaScript; <a href="openapi.json">openapi.json</a> has the same content.</noscript></main>
</body>
</html>
`;

const text = (type: string, body: string, headers?: Page["headers"]): Page => ({
  status: 200,
  type: `${type}; charset=utf-8`,
  body,
  headers: { "cache-control": "public, max-age=300", ...headers },
});

async function file(type: string, maxAge: number, read: () => Promise<Buffer>): Promise<Page> {
  try {
    return { status: 200, type, body: await read(), headers: { "cache-control": `public, max-age=${maxAge}` } };
  } catch {
    const body = "the page is not built: install the development dependencies, or use the package\n";
    return { status: 404, type: "text/plain", body };
  }
}

/** Reads a file once, so that all responses share its bytes. If a file cannot be read, the next request tries again. */
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

/** Reads a file of Swagger UI: from the copy in the published package (deploy/packages/build.ts), or else from `swagger-ui-dist`. */
async function readSwaggerUi(name: string): Promise<Buffer> {
  const copy = new URL(`swagger-ui/${name}`, import.meta.url);
  return readFile(copy).catch(() => readFile(new URL(import.meta.resolve(`swagger-ui-dist/${name}`))));
}

const asset = (type: string, name: string) => once(() => file(type, 86_400, () => readSwaggerUi(name)));

const styles = asset("text/css; charset=utf-8", "swagger-ui.css");

const own = (type: string, name: string) =>
  once(() => file(type, 300, () => readFile(new URL(`page/${name}`, import.meta.url))));

export function referencePages(options: ReferenceOptions): [path: string, render: Render][] {
  const url = new URL(`../../../../gen/${DOCUMENTS[options.api]}`, import.meta.url);
  const document: [string, Render] = ["/openapi.json", once(() => file("application/json", 300, () => readFile(url)))];
  if (!options.page) return [document];
  const page = async (request: HttpRequest): Promise<Page> => {
    const needed = await styles(request);
    const headers = { "content-security-policy": POLICY, "referrer-policy": "no-referrer", "x-frame-options": "DENY" };
    return needed.status === 200 ? text("text/html", html(options), headers) : needed;
  };
  return [
    document,
    ["/docs", page],
    ["/docs/reference.js", own("text/javascript; charset=utf-8", "reference.js")],
    ["/docs/reference.css", own("text/css; charset=utf-8", "reference.css")],
    ["/docs/swagger-ui-bundle.js", asset("text/javascript; charset=utf-8", "swagger-ui-bundle.js")],
    ["/docs/swagger-ui.css", styles],
  ];
}
