/** The servers that are measured, and the requests that each of them gets. */
import type { Plan } from "./plan.ts";
import { start } from "./processes.ts";
import {
  logoutJson,
  type Request,
  refreshGrpc,
  refreshGrpcWeb,
  refreshJson,
  refreshOAuth,
  refreshRpc,
} from "./requests.ts";
import { accepts, ISSUER, logIn, type Service, startService, type World } from "./service.ts";

export const CONNECTIONS = 32;
/** The number of logouts in one round. Each needs a login before it. */
const LOGOUTS = 800;

export type Contender = {
  readonly name: string;
  readonly title: string;
  /** The status that each response must have. */
  readonly expected: string;
  /** The server's process. */
  readonly pid: number;
  readonly plan: Plan;
  /** Returns the credentials for the next round, if a round uses them up. */
  readonly refill?: () => Promise<readonly string[]>;
};

/**
 * What contenders need to start. `rotating` is a service that rotates the token at each refresh; `service` has the default reuse interval.
 */
export type Stage = { readonly world: World; readonly rotating: Service; readonly service: Service };

/**
 * The only setting that differs from the default. A client of a benchmark refreshes again within the default reuse interval, and would get
 * the token of its previous response once more.
 */
export const ROTATE = { REUSE_INTERVAL: "0" };
const DEFAULT_REUSE_INTERVAL = 10_000;

function plan(name: string, port: number, request: (port: number) => Request, credentials: readonly string[]): Plan {
  return { name, port, ...request(port), use: "adopt", credentials };
}

async function refreshTokens(service: Service): Promise<string[]> {
  return (await logIn(service, CONNECTIONS)).map(({ refreshToken }) => refreshToken);
}

/** Returns the contender that refreshes at a service. */
async function refreshing(
  name: string,
  title: string,
  service: Service,
  request: (port: number) => Request = refreshJson,
): Promise<Contender> {
  const { pid, port } = service;
  return { name, title, expected: "200", pid, plan: plan(name, port, request, await refreshTokens(service)) };
}

async function startFloor({ world }: Stage, reuseIntervalMs: number): Promise<{ pid: number; port: number }> {
  const { pid, line } = await start("server", ["test/bench/refresh/floor.ts"], {
    env: {
      REDIS_PORT: String(world.redisPort),
      KEYS_FILE: world.keysFile,
      REUSE_INTERVAL: String(reuseIntervalMs),
      ISSUER,
    },
  });
  return { pid, port: (JSON.parse(line) as { port: number }).port };
}

async function floor(name: string, title: string, stage: Stage, reuseIntervalMs: number): Promise<Contender> {
  const { pid, port } = await startFloor(stage, reuseIntervalMs);
  const credentials = await refreshTokens(stage.service);
  await checkFloor(port, stage.service);
  return { name, title, expected: "200", pid, plan: plan(name, port, refreshJson, credentials) };
}

async function accessTokens(service: Service): Promise<string[]> {
  return (await logIn(service, LOGOUTS)).map(({ accessToken }) => accessToken);
}

/**
 * Checks that the service accepts the tokens of the minimal server (floor.ts). Otherwise that server might be fast because it does less
 * work.
 */
async function checkFloor(port: number, service: Service): Promise<void> {
  const [login] = await logIn(service, 1);
  const response = await fetch(`http://127.0.0.1:${port}/v1/auth/refresh`, {
    method: "POST",
    headers: { cookie: `refresh_token=${login?.refreshToken}` },
  });
  const { data } = (await response.json()) as { data: { accessToken: string } };
  const [, successor = ""] = /^refresh_token=([^;]+)/.exec(response.headers.getSetCookie()[0] ?? "") ?? [];
  for (const token of [data.accessToken, successor]) {
    if (!(await accepts(service, token))) throw new Error("the service does not accept the floor's tokens");
  }
}

/** How to start each contender, by its name. */
export const CONTENDERS: Readonly<Record<string, (stage: Stage, baseline?: string) => Promise<Contender>>> = {
  floor: (stage) => floor("floor", "floor: node:http, MAC, Lua, ES256", stage, 0),

  json: ({ rotating }) => refreshing("json", "this service, JSON", rotating),

  baseline: async ({ world }, baseline) =>
    refreshing("baseline", "the other checkout, JSON", await startService(world, ROTATE, "server", baseline)),

  traced: async ({ world }) => {
    const { line } = await start("load", ["test/bench/refresh/sink.ts"]);
    const { port } = JSON.parse(line) as { port: number };
    const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}` };
    const traced = await startService(world, { ...ROTATE, ...endpoint });
    return refreshing("traced", "this service, JSON, OpenTelemetry on", traced);
  },

  rpc: ({ rotating }) => refreshing("rpc", "this service, Connect RPC", rotating, refreshRpc),

  oauth: ({ rotating }) => refreshing("oauth", "this service, OAuth token endpoint", rotating, refreshOAuth),

  grpc: async ({ rotating }) => {
    const contender = await refreshing("grpc", "this service, gRPC", rotating, refreshGrpc);
    return { ...contender, plan: { ...contender.plan, isGrpc: true } };
  },

  "grpc-web": ({ rotating }) => refreshing("grpc-web", "this service, gRPC-Web", rotating, refreshGrpcWeb),

  fastify: async ({ world }) => {
    const { pid, line } = await start("server", ["test/bench/refresh/by-hand.ts"], {
      env: { REDIS_PORT: String(world.redisPort), ISSUER, SESSIONS: String(CONNECTIONS), NODE_ENV: "production" },
    });
    const { port, tokens } = JSON.parse(line) as { port: number; tokens: string[] };
    return {
      name: "fastify",
      title: "Fastify by hand: GET, MULTI, no reuse detection",
      expected: "200",
      pid,
      plan: plan("fastify", port, refreshJson, tokens),
    };
  },

  "floor-repeat": (stage) => floor("floor-repeat", "floor, repeating", stage, DEFAULT_REUSE_INTERVAL),

  "json-repeat": ({ service }) => refreshing("json-repeat", "this service, JSON, repeating", service),

  "floor-logout": async (stage) => {
    const { pid, port } = await startFloor(stage, 0);
    return {
      name: "floor-logout",
      title: "floor, logout: ES256 verified",
      expected: "200",
      pid,
      plan: { ...plan("floor-logout", port, logoutJson, []), use: "spend" },
      refill: () => accessTokens(stage.service),
    };
  },

  logout: async ({ service, rotating }) => ({
    name: "logout",
    title: "this service, logout",
    expected: "200",
    pid: rotating.pid,
    plan: { ...plan("logout", rotating.port, logoutJson, []), use: "spend" },
    refill: () => accessTokens(service),
  }),

  "bare-401": async () => {
    const { pid, line } = await start("server", ["test/bench/refresh/bare-401.ts"]);
    const { port } = JSON.parse(line) as { port: number };
    const credentials = Array.from({ length: CONNECTIONS }, () => "A".repeat(96));
    return {
      name: "bare-401",
      title: "node:http, the same 401 for everything",
      expected: "401",
      pid,
      plan: { ...plan("bare-401", port, refreshJson, credentials), use: "repeat" },
    };
  },

  forged: async ({ rotating }) => ({
    name: "forged",
    title: "this service, forged tokens",
    expected: "401",
    pid: rotating.pid,
    plan: {
      ...plan("forged", rotating.port, refreshJson, (await refreshTokens(rotating)).map(forge)),
      use: "repeat",
    },
  }),
};

/** Replaces the MAC by another one of the same form. */
function forge(token: string): string {
  return token.slice(0, -1) + (token.endsWith("A") ? "B" : "A");
}
