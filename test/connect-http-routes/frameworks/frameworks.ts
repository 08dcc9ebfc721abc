/** The HTTP layer in frameworks, as docs/reference/http-layer.md says: each with its CORS middleware in front, and a page of its own behind. */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import Express, { type Express as ExpressApp } from "express";
import Fastify, { type FastifyInstance } from "fastify";
import { fastifyHttpRoutes } from "../../../src/connect-http-routes/frameworks/fastify.ts";
import { koaHttpRoutes } from "../../../src/connect-http-routes/frameworks/koa.ts";
import { createFetchHandler, createHttpHandler } from "../../../src/connect-http-routes/index.ts";
import { RichServiceRoutes } from "../gen/rich/v1/rich_http.ts";
import { richRoutes as routes } from "../support/rich-service.ts";
import { next } from "./next.ts";
import { ORIGIN, OWN_PAGE } from "./own.ts";
import { bun, deno, workers } from "./runtimes.ts";

export type Running = { readonly port: number; close(): Promise<unknown> };
/** Starts an application with the routes below a prefix. */
type Start = (prefix: "" | "/api") => Promise<Running>;

const tables = [{ ...RichServiceRoutes, multipart: true }];
const onInternalError = () => {};

const { resolve } = createRequire(join(import.meta.dirname, "../../dependencies/frameworks/package.json"));
// The frameworks are not dependencies of the project, so their types are named here.
const load = async <Module>(name: string) => (await import(resolve(name))) as Module;
type Middleware = (...args: never[]) => unknown;
type Default<Value> = { readonly default: Value };

async function listenOn(server: Server): Promise<Running> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}

export const plainNode: Start = () => listenOn(createServer(createHttpHandler({ routes, tables, onInternalError })));

async function useExpress(app: ExpressApp, prefix: string, parser?: Middleware): Promise<void> {
  const { default: cors } = await load<Default<(options: object) => Middleware>>("cors");
  app.use(cors({ origin: ORIGIN }) as never);
  if (parser !== undefined) app.use(parser as never);
  app.use(prefix || "/", createHttpHandler({ routes, tables, onInternalError }));
  app.get("/own", (_request, response) => void response.send(OWN_PAGE));
}

const express =
  (name: "express" | "express-4", isBehindJson: boolean): Start =>
  async (prefix) => {
    const { default: Framework } =
      name === "express" ? { default: Express } : await load<Default<typeof Express>>(name);
    const app = Framework();
    await useExpress(app, prefix, isBehindJson ? (Framework.json() as Middleware) : undefined);
    return listenOn(createServer(app));
  };

async function useFastify(app: FastifyInstance, prefix: string): Promise<void> {
  const { default: cors } = await load<Default<never>>("@fastify/cors");
  await app.register(cors, { origin: ORIGIN });
  await app.register(fastifyHttpRoutes, { prefix, routes, tables, onInternalError });
}

const fastify: Start = async (prefix) => {
  const app = Fastify({ forceCloseConnections: true });
  await useFastify(app, prefix);
  app.get("/own", () => OWN_PAGE);
  // A parser of the application is no concern of the routes.
  app.addContentTypeParser("text/csv", { parseAs: "string" }, (_request, body, done) => done(null, body));
  await app.listen({ port: 0, host: "127.0.0.1" });
  return { port: (app.server.address() as AddressInfo).port, close: () => app.close() };
};

type KoaContext = { path: string; body: unknown };
type KoaApp = {
  use(middleware: (...args: never[]) => unknown): KoaApp;
  callback(): (request: never, response: never) => void;
};

const koa: Start = async (prefix) => {
  const { default: Koa } = await load<Default<new () => KoaApp>>("koa");
  const { default: cors } = await load<Default<(options: object) => ReturnType<typeof koaHttpRoutes>>>("@koa/cors");
  const app = new Koa().use(cors({ origin: () => ORIGIN }));
  const requestPathPrefix = prefix === "" ? {} : { requestPathPrefix: prefix };
  app.use(koaHttpRoutes({ routes, tables, onInternalError, ...requestPathPrefix }));
  app.use((ctx: KoaContext, next: () => Promise<void>) => {
    if (ctx.path !== "/own") return next();
    ctx.body = OWN_PAGE;
  });
  return listenOn(createServer(app.callback() as never));
};

type HonoContext = { readonly req: { readonly raw: Request }; text(text: string): Response };
type HonoApp = {
  use(path: string, middleware: Middleware): void;
  get(path: string, handler: (context: HonoContext) => Response): void;
  all(path: string, handler: (context: HonoContext) => Promise<Response>): void;
  readonly fetch: (request: Request) => Promise<Response>;
};

const hono: Start = async (prefix) => {
  const { Hono } = await load<{ readonly Hono: new () => HonoApp }>("hono");
  const { cors } = await load<{ cors(options: object): Middleware }>("hono/cors");
  const { createAdaptorServer } = await load<{ createAdaptorServer(options: object): Server }>("@hono/node-server");
  const app = new Hono();
  const requestPathPrefix = prefix === "" ? {} : { requestPathPrefix: prefix };
  const handler = createFetchHandler({ routes, tables, onInternalError, ...requestPathPrefix });
  app.use("*", cors({ origin: ORIGIN }));
  app.get("/own", (context) => context.text(OWN_PAGE));
  app.all(`${prefix}/*`, ({ req }) => handler(req.raw));
  return listenOn(createAdaptorServer({ fetch: app.fetch }));
};

type NestApp = {
  use(...args: unknown[]): void;
  enableCors(options: object): void;
  getHttpServer(): Server;
  init(): Promise<unknown>;
  listen(port: number, host: string): Promise<unknown>;
  close(): Promise<unknown>;
};
type Decorator = (target: object, ...more: unknown[]) => unknown;

/** A Nest application with one controller. Decorators are called as functions, since Node runs no decorators. */
async function nestModule(): Promise<unknown> {
  await import(resolve("reflect-metadata"));
  const { Module, Controller, Get } =
    await load<Record<"Module" | "Controller" | "Get", (of?: unknown) => Decorator>>("@nestjs/common");
  class OwnController {
    own() {
      return OWN_PAGE;
    }
  }
  Get("own")(OwnController.prototype, "own", Object.getOwnPropertyDescriptor(OwnController.prototype, "own"));
  Controller()(OwnController);
  class AppModule {}
  Module({ controllers: [OwnController] })(AppModule);
  return AppModule;
}

async function startNest(app: NestApp): Promise<Running> {
  await app.listen(0, "127.0.0.1");
  const server = app.getHttpServer();
  return {
    port: (server.address() as AddressInfo).port,
    close() {
      server.closeAllConnections();
      return app.close();
    },
  };
}

type Factory = { create(module: unknown, ...more: unknown[]): Promise<NestApp> };

const nestOnExpress: Start = async (prefix) => {
  const { NestFactory } = await load<{ readonly NestFactory: Factory }>("@nestjs/core");
  const app = await NestFactory.create(await nestModule(), { logger: false });
  app.enableCors({ origin: ORIGIN });
  app.use(prefix || "/", createHttpHandler({ routes, tables, onInternalError }));
  return startNest(app);
};

const nestOnFastify: Start = async (prefix) => {
  const { NestFactory } = await load<{ readonly NestFactory: Factory }>("@nestjs/core");
  const { FastifyAdapter } = await load<{
    readonly FastifyAdapter: new (options: object) => { getInstance(): FastifyInstance };
  }>("@nestjs/platform-fastify");
  const adapter = new FastifyAdapter({ forceCloseConnections: true });
  const app = await NestFactory.create(await nestModule(), adapter, { logger: false });
  await useFastify(adapter.getInstance(), prefix);
  return startNest(app);
};

const PREFIXES = ["", "/api"] as const;

/** The frameworks, with the prefixes at which they are tried. */
export const FRAMEWORKS: readonly (readonly [string, Start, readonly ("" | "/api")[]])[] = [
  ["Express 5", express("express", false), PREFIXES],
  ["Express 5 behind express.json()", express("express", true), PREFIXES],
  ["Express 4", express("express-4", false), PREFIXES],
  ["Express 4 behind express.json()", express("express-4", true), PREFIXES],
  ["Fastify", fastify, PREFIXES],
  ["Koa", koa, PREFIXES],
  ["Hono", hono, PREFIXES],
  ["NestJS on Express", nestOnExpress, PREFIXES],
  ["NestJS on Fastify", nestOnFastify, PREFIXES],
  ["Next.js", next, ["/api"]],
  ["Bun", bun, ["/api"]],
  ["Deno", deno, ["/api"]],
  ["Workers", workers, ["/api"]],
];
