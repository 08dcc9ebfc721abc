/** Several service processes that are one service: one store, one key ring, one issuer. */
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { onTestFinished } from "vitest";
import { generateRing } from "../../../src/tokens/generate-key.ts";
import { createRingFile } from "../../../src/tokens/ring-file.ts";
import { type Answer, type Caller, RPC_DOORS } from "../../support/clients.ts";
import { type RedisServer, startRedis } from "../../support/redis.ts";
import { type Service, scratch, startService } from "../../support/service.ts";

export const ISSUER = "https://issuer.example";

type Env = Readonly<Record<string, string>>;

export type Deployment = {
  /** Those that run now; a restarted one is another one. */
  readonly services: Service[];
  readonly adminToken: string;
  readonly keysFile: string;
  /** What all of them were given. */
  readonly env: Env;
};

/** Starts `replicas` services on what `env` says, and `own` of each; they end with the test. */
export async function deploy(
  replicas: number,
  env: Env,
  own: (replica: number) => Env = () => ({}),
): Promise<Deployment> {
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
    ...env,
  };
  const services: Service[] = [];
  onTestFinished(async () => {
    await Promise.all(services.map((service) => service.kill9()));
  });
  for (let i = 0; i < replicas; i++) services.push(await startService({ ...given, ...own(i) }));
  return { services, adminToken, keysFile, env: given };
}

/** A Redis that ends with the test. */
export async function aRedis(...args: string[]): Promise<RedisServer> {
  const redis = await startRedis(...args);
  onTestFinished(() => redis.stop());
  return redis;
}

export function pick<T>(items: readonly T[]): T {
  const item = items[Math.floor(Math.random() * items.length)];
  if (item === undefined) throw new Error("nothing to pick from");
  return item;
}

export type Doors = { readonly public: Caller; readonly admin: Caller };

const opened = new WeakMap<Service, Doors>();

/** Callers for both listeners of a service. */
export function doorsOf(service: Service): Doors {
  const open = pick(RPC_DOORS.slice(0, 2)).open; // Connect, in JSON or binary
  const listeners = opened.get(service) ?? { public: open(service.publicUrl), admin: open(service.adminUrl) };
  opened.set(service, listeners);
  return listeners;
}

/** What an answer says; undefined when nobody knows whether the call was done. @throws where an answer is a fault of ours */
export function read<O extends DescMessage, T>(
  answer: Answer<O>,
  say: (message: MessageShape<O>) => T,
): T | "dead" | undefined {
  if (answer.ok) return say(answer.message);
  if (answer.code === "E001_AUTH_FAILURE") return "dead";
  // No code: not an answer of the service, but of a connection that was cut.
  if (answer.code === "E503_UNAVAILABLE" || answer.code === undefined) return undefined;
  throw new Error(`${answer.code}: ${answer.text}`);
}
