/** Runs the real service on a real Redis with its clients, and measures its costs. */
import { Redis } from "ioredis";
import { startRedis, startRedisCluster } from "../../support/redis.ts";
import { cpuTime } from "../refresh/proc.ts";
import { startGenerator } from "../refresh/processes.ts";
import { logoutJson, refreshJson } from "../refresh/requests.ts";
import { type Credentials, createKeys, type Service, startService } from "../refresh/service.ts";

/** The duration of one measurement at a steady load, in s. */
export const SLICE_S = 4;

export type World = {
  readonly services: readonly Service[];
  readonly nodes: readonly Redis[];
  stop(): Promise<void>;
};

export async function startWorld(instances: number, kind: "one Redis" | "cluster" = "one Redis"): Promise<World> {
  const redis = kind === "cluster" ? await startRedisCluster() : await startRedis('--save ""');
  const ports = "nodes" in redis ? redis.nodes.map(({ port }) => port) : [redis.port];
  const keysFile = await createKeys();
  // Without a reuse interval each refresh returns a new token. A client of this measurement refreshes again so soon that it would otherwise
  // get the previous response once more.
  const env = { REDIS_URL: redis.url, REUSE_INTERVAL: "0" };
  const services: Service[] = [];
  for (let at = 0; at < instances; at++) {
    services.push(await startService({ redisPort: 0, keysFile }, env, "anywhere"));
  }
  const nodes = ports.map((port) => new Redis(port, "127.0.0.1"));
  return {
    services,
    nodes,
    async stop() {
      await Promise.all(services.map((service) => service.stop()));
      for (const node of nodes) node.disconnect();
      await redis.stop();
    },
  };
}

/** Returns the sums of Redis's own counters over all nodes. */
export async function figures(nodes: readonly Redis[], section: string, ...names: readonly string[]): Promise<number> {
  const texts = await Promise.all(nodes.map((node) => node.info(section)));
  const figure = (text: string, name: string) => Number(new RegExp(`^${name}:([\\d.]+)`, "m").exec(text)?.[1]);
  return texts.flatMap((text) => names.map((name) => figure(text, name))).reduce((sum, value) => sum + value, 0);
}

/** What an action has cost: the CPU times of the instances and of Redis in µs, and the bytes between instances and Redis. */
export type Spent = {
  readonly seconds: number;
  readonly instance: number;
  readonly redis: number;
  readonly redisBytes: number;
};

/** Measures the processor time of all instances and all nodes during an action. */
export async function spent({ services, nodes }: World, what: () => Promise<unknown>): Promise<Spent> {
  const read = async () => ({
    at: performance.now(),
    instance: services.reduce((sum, { pid }) => sum + (cpuTime(pid) ?? Number.NaN), 0),
    redis: await figures(nodes, "cpu", "used_cpu_sys", "used_cpu_user"),
    bytes: await figures(nodes, "stats", "total_net_input_bytes", "total_net_output_bytes"),
  });
  const before = await read();
  await what();
  const after = await read();
  return {
    seconds: (after.at - before.at) / 1000,
    instance: (after.instance - before.instance) * 1e6,
    redis: (after.redis - before.redis) * 1e6,
    redisBytes: after.bytes - before.bytes,
  };
}

export type Load = { run(): Promise<number>; stop(): Promise<void> };

/** Refreshes at a steady rate, with the cookie of each session as a browser keeps it. `run` returns the number of refreshes. */
export function refreshes(service: Service, sessions: readonly Credentials[], rate: number): Promise<Load> {
  const credentials = sessions.map(({ refreshToken }) => refreshToken);
  return load({ name: "refresh", port: service.port, ...refreshJson(service.port), use: "adopt", credentials }, rate);
}

/** Logs out each session once. */
export function logouts(service: Service, sessions: readonly Credentials[], rate?: number): Promise<Load> {
  const credentials = sessions.map(({ accessToken }) => accessToken);
  return load({ name: "logout", port: service.port, ...logoutJson(service.port), use: "spend", credentials }, rate);
}

type Plan = Parameters<ReturnType<typeof startGenerator>["load"]>[0];

async function load(plan: Plan, rate: number | undefined): Promise<Load> {
  const generator = startGenerator();
  await generator.load(plan);
  const slice = { name: plan.name, seconds: SLICE_S, ...(rate === undefined ? {} : { rate }) };
  return {
    async run() {
      const { responses } = await generator.run(slice);
      const others = Object.keys(responses).filter((status) => status !== "200");
      if (others.length > 0) throw new Error(`${plan.name}: unexpected responses ${JSON.stringify(responses)}`);
      return responses["200"] ?? 0;
    },
    stop: () => generator.stop(),
  };
}

/** Bytes of a refresh's request and response. */
export async function bytesOfRefresh(service: Service, { refreshToken }: Credentials): Promise<number> {
  const { head, tail } = refreshJson(service.port);
  const request = `${head}${refreshToken}${tail}`;
  const [line = "", ...lines] = request.split("\r\n\r\n")[0]?.split("\r\n") ?? [];
  const headers = lines.map((text): [string, string] => [
    text.slice(0, text.indexOf(":")),
    text.slice(text.indexOf(":") + 2),
  ]);
  const [method = "", path = ""] = line.split(" ");
  const own = headers.filter(([name]) => name !== "host" && name !== "content-length" && name !== "accept-encoding");
  const response = await fetch(`http://127.0.0.1:${service.port}${path}`, { method, headers: own, body: "{}" });
  const ofHead = [...response.headers].reduce((sum, [name, value]) => sum + name.length + value.length + 4, 19);
  return request.length + ofHead + (await response.arrayBuffer()).byteLength;
}
