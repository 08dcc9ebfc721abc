/** Starts several service processes that form one deployment: they share the store, the key ring and the issuer. */
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { onTestFinished } from "vitest";
import { generateRing } from "../../../src/service/tokens/generate-key.ts";
import { createRingFile } from "../../../src/service/tokens/ring-file.ts";
import { type Caller, type CallResult, RPC_PROTOCOLS } from "../../support/clients.ts";
import { type RedisCluster, type RedisServer, startRedis, startRedisCluster } from "../../support/redis.ts";
import { type Service, scratch, startService } from "../../support/service.ts";

export const ISSUER = "https://issuer.example";

type Env = Readonly<Record<string, string>>;

export type Deployment = {
  /** The processes that are running. The restart of a service replaces its entry. */
  readonly services: Service[];
  readonly adminToken: string;
  readonly keysFile: string;
  /** The environment that the services share. */
  readonly env: Env;
};

/** Settings that prevent responses with 503 on a busy machine. Tests of these limits override them. */
const PATIENT: Env = { REDIS_COMMAND_TIMEOUT: "10s", OVERLOAD_MAX_WAITING: "0", OVERLOAD_MAX_LOOP_DELAY: "0" };

/** Starts `count` services. All have the environment `env`, and each also its `own`. The services stop at the end of the test. */
export async function deploy(count: number, env: Env, own: (at: number) => Env = () => ({})): Promise<Deployment> {
  const directory = scratch();
  const adminToken = randomBytes(32).toString("base64url");
  const keysFile = join(directory, "keys.json");
  await createRingFile(keysFile, generateRing("ES256", Date.now()));
  const given = {
    ISSUER,
    ADMIN_TOKENS: adminToken,
    KEYS_FILE: keysFile,
    DATA_DIR: join(directory, "data"),
    LOG_LEVEL: "silent",
    ...PATIENT,
    ...env,
  };
  const services: Service[] = [];
  onTestFinished(async () => {
    await Promise.all(services.map((service) => service.kill9()));
  });
  for (let at = 0; at < count; at++) services.push(await startService({ ...given, ...own(at) }));
  return { services, adminToken, keysFile, env: given };
}

/** Starts a Redis that ends with the test. */
export async function startTestRedis(...args: string[]): Promise<RedisServer> {
  const redis = await startRedis(...args);
  onTestFinished(() => redis.stop());
  return redis;
}

/** Starts a cluster of three masters that ends with the test. */
export async function startTestCluster(): Promise<RedisCluster> {
  const cluster = await startRedisCluster();
  onTestFinished(() => cluster.stop());
  return cluster;
}

export function pick<T>(items: readonly T[]): T {
  const item = items[Math.floor(Math.random() * items.length)];
  if (item === undefined) throw new Error("nothing to pick from");
  return item;
}

export type Callers = { readonly public: Caller; readonly admin: Caller };

const opened = new WeakMap<Service, Callers>();

/** Returns the callers for both listeners of a service. */
export function callersOf(service: Service): Callers {
  const { open } = pick(RPC_PROTOCOLS.slice(0, 2)); // The protocol is Connect, in JSON or binary.
  const listeners = opened.get(service) ?? { public: open(service.publicUrl), admin: open(service.adminUrl) };
  opened.set(service, listeners);
  return listeners;
}

/** Returns the outcome of a call; undefined if it is unknown whether the call was executed. @throws for any other failure */
export function outcomeOf<O extends DescMessage, T>(
  response: CallResult<O>,
  toOutcome: (message: MessageShape<O>) => T,
): T | "dead" | undefined {
  if (response.ok) return toOutcome(response.message);
  if (response.code === "E001_AUTH_FAILURE") return "dead";
  // A response without an error code is not the service's own, so the connection was cut.
  if (response.code === "E503_UNAVAILABLE" || response.code === undefined) return undefined;
  throw new Error(`${response.code}: ${response.text}`);
}
