/** The routers of frameworks, each with the kit's gate before a page, a route for everything else by its path, and a folder of files. */
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type RequestListener } from "node:http";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join, posix } from "node:path";
import express from "express";
import Fastify, { type FastifyInstance } from "fastify";
import { sessionMiddleware as forExpress } from "../../src/server/express.ts";
import { sessionHook } from "../../src/server/fastify.ts";
import type { GateOptions } from "../../src/server/gate.ts";
import { sessionMiddleware as forHono } from "../../src/server/hono.ts";
import { createServerSessions } from "../../src/server/index.ts";
import { sessionHandler } from "../../src/server/nuxt.ts";
import { sessionMiddleware as forReactRouter } from "../../src/server/react-router.ts";
import { getRaw } from "./raw-request.ts";

export const SECRET = "the account of somebody";

/** Returns the body of the response to a path, which is sent unchanged. */
export type Get = (path: string) => Promise<string>;
export type Router = { readonly get: Get; close(): Promise<unknown> | unknown };
type RunRouter = (options: GateOptions) => Promise<Router> | Router;

// Requests without cookies have no session, so the kit calls neither the service nor the verifier.
const sessions = createServerSessions({
  service: "http://127.0.0.1:9",
  verifier: { verify: () => Promise.reject(new Error("there is no token")) },
});

/** The page of an application that has one route for all its pages, and looks for them by the rest of the path. */
function pageOf(rest: string | undefined): string {
  const path = posix.normalize(`/${rest ?? ""}`).replaceAll("\\", "/");
  return isAccount(path) ? SECRET : "open";
}

export const isAccount = (path: string): boolean => path === "/account" || path.startsWith("/account/");

/** Creates a folder with pages as files. */
function createPages() {
  const root = mkdtempSync(join(tmpdir(), "pages-"));
  for (const [folder, text] of [
    ["account", SECRET],
    ["open", "open"],
  ] as const) {
    mkdirSync(join(root, folder));
    for (const file of ["index.html", "x.html", "x.json", "x"]) writeFileSync(join(root, folder, file), text);
  }
  return { root, remove: () => rmSync(root, { recursive: true }) };
}

async function listen(listener: RequestListener, close: () => void = () => {}): Promise<Router> {
  const server = createServer(listener).listen(0, "127.0.0.1");
  await once(server, "listening");
  return overNetwork((server.address() as AddressInfo).port, async () => {
    server.close();
    close();
  });
}

const overNetwork = (port: number, close: () => Promise<unknown>): Router => ({
  get: async (path) => (await getRaw(port, path)).body,
  close,
});

/** Sends requests to a framework that takes them as `fetch` has them. Its servers make their URLs in this way. */
const overFetch = (fetch: (request: Request) => Promise<Response> | Response): Router => ({
  async get(path) {
    const url = URL.parse(`http://application.example${path}`);
    if (url === null) return "no URL";
    return (await fetch(new Request(url, { headers: { accept: "text/html" } }))).text();
  },
  close() {},
});

export const runExpress: RunRouter = (options) => {
  const app = express();
  const { root, remove } = createPages();
  app.use(forExpress(sessions, options));
  app.use("/account", (_request, response) => void response.send(SECRET));
  app.use(express.static(root, { extensions: ["html"] }));
  app.get("/*rest", ({ params }, response) => void response.send(pageOf(params.rest?.join("/"))));
  app.use((_request, response) => void response.send("open"));
  return listen(app, remove);
};

export const runFastifyWithFiles: RunRouter = async (options) => {
  const app = Fastify();
  const { root, remove } = createPages();
  app.addHook("onRequest", sessionHook(sessions, options));
  await app.register(framework("@fastify/static"), { root, extensions: ["html"] });
  return listenWithFastify(app, remove);
};

/** Fastify with the options that let it accept more ways to write a path. */
export const runLenientFastify: RunRouter = (options) => {
  const lenient = { ignoreDuplicateSlashes: true, ignoreTrailingSlash: true, useSemicolonDelimiter: true };
  const app = Fastify({ routerOptions: { ...lenient, caseSensitive: false } });
  app.addHook("onRequest", sessionHook(sessions, options));
  app.get("/account", () => SECRET);
  app.get("/account/:page", () => SECRET);
  app.get("/*", async ({ params }) => pageOf((params as { readonly "*": string })["*"]));
  return listenWithFastify(app);
};

async function listenWithFastify(app: FastifyInstance, remove = () => {}): Promise<Router> {
  await app.listen({ port: 0, host: "127.0.0.1" });
  return overNetwork((app.server.address() as AddressInfo).port, async () => {
    await app.close();
    remove();
  });
}

const require = createRequire(join(import.meta.dirname, "../dependencies/frameworks/package.json"));
/** Loads a package that package.json lacks, so its types are not known here. */
// biome-ignore lint/suspicious/noExplicitAny: the types of the package are not installed
const framework = (name: string): any => require(name);

export const runHono: RunRouter = (options) => {
  const app = new (framework("hono").Hono)();
  app.use(forHono(sessions, options));
  const text = (body: string) => new Response(body);
  app.get("/account", () => text(SECRET));
  app.get("/account/*", () => text(SECRET));
  app.get("/:rest{.*}", (context: { req: { param(name: string): string } }) => text(pageOf(context.req.param("rest"))));
  return overFetch((request) => app.fetch(request));
};

/** React Router in framework mode, with routes that return their responses themselves. */
export const runReactRouter: RunRouter = (options) => {
  const { createContext, createRequestHandler } = framework("react-router");
  const route = (id: string, path: string, loader: (given: { params: Record<string, string> }) => Response) => ({
    [id]: { id, path, parentId: "root", module: { loader } },
  });
  const middleware = [forReactRouter(sessions, createContext(), options)];
  const routes = {
    root: { id: "root", path: "", module: { middleware, default: () => null } },
    ...route("account", "account", () => new Response(SECRET)),
    ...route("below", "account/:page", () => new Response(SECRET)),
    ...route("rest", "*", ({ params }) => new Response(pageOf(params["*"]))),
  };
  const entry = { module: { default: () => new Response("document"), streamTimeout: 0 } };
  const build = {
    routes,
    entry,
    basename: "/",
    publicPath: "/",
    assetsBuildDirectory: "",
    ssr: true,
    isSpaMode: false,
  };
  const assets = { routes: {}, entry: { module: "", imports: [] }, url: "", version: "" };
  const handler = createRequestHandler({
    ...build,
    assets,
    future: {},
    prerender: [],
    routeDiscovery: { mode: "lazy" },
  });
  return overFetch((request) => handler(request));
};

/** h3 1, on which Nuxt 4 runs. */
export const runH3: RunRouter = (options) => {
  const { createApp, createRouter, eventHandler, getRouterParam, toNodeListener } = framework("h3");
  const router = createRouter()
    .get(
      "/account",
      eventHandler(() => SECRET),
    )
    .get(
      "/account/**",
      eventHandler(() => SECRET),
    )
    .get(
      "/**",
      eventHandler((event: unknown) => pageOf(getRouterParam(event, "_", { decode: true }))),
    );
  return listen(toNodeListener(createApp().use(sessionHandler(sessions, options)).use(router)));
};

export const runH3Next: RunRouter = async (options) => {
  const { H3, getRouterParam, toNodeHandler } = await import(require.resolve("h3-2"));
  const app = new H3();
  app.use(sessionHandler(sessions, options));
  app.get("/account", () => SECRET);
  app.get("/account/**", () => SECRET);
  app.get("/**", (event: unknown) => pageOf(getRouterParam(event, "_", { decode: true })));
  return listen(toNodeHandler(app));
};
