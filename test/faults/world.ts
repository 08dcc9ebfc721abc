/** A deployment under faults: real service processes on a real store, with honest browsers on it. */
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { generateRing } from "../../src/service/tokens/generate-key.ts";
import { createRingFile } from "../../src/service/tokens/ring-file.ts";
import { createVerifier } from "../../src/verifier/index.ts";
import { PATIENCE_MS } from "../support/patience.ts";
import { request } from "../support/raw-http.ts";
import { type Service, scratch, startService } from "../support/service.ts";
import { untilTrue } from "../support/until.ts";
import { Browsers, MAX_STALENESS_MS, MIN_REQUESTS, serves } from "./browsers.ts";
import { newTally, type Row } from "./tally.ts";

type Env = Readonly<Record<string, string>>;

/** A store, and the parts of it that a fault affects. */
export type Backend<T> = {
  readonly env: Env;
  /** Returns the environment of one instance, by its number from 0. */
  readonly envOf?: (at: number) => Env;
  readonly parts: T;
  stop(): Promise<void>;
};

export type World<T> = {
  readonly parts: T;
  readonly services: Service[];
  /** Starts another instance of the service. */
  add(): Promise<Service>;
  /** Takes an instance out of the fleet, as a load balancer does. */
  remove(service: Service): void;
  serves(service: Service): Promise<boolean>;
  /** Allows the service to refuse requests for this long, in ms, without counting them as unavailable. */
  allowStall(ms: number): void;
};

export type Fault<T> = {
  readonly name: string;
  open(): Promise<Backend<T>>;
  /** Causes the fault. Resolves when the fault is over. */
  strike(world: World<T>): Promise<void>;
  /** The number of service instances; by default `instances` of the `Pace` with which the fault is run. */
  readonly instances?: number;
  readonly reuseIntervalMs?: number;
  /** The environment of the services. */
  readonly env?: Env;
  /** The reason in docs/why/faults.md why some requests may fail under this fault. */
  readonly allowed?: string;
  /** Whether the machine is only busy and nothing fails, so that every request must be served. */
  readonly isNoFault?: boolean;
  /**
   * The rate at which requests are sent as soon as the service is ready. These requests have no timeout. By default browsers are simulated
   * instead.
   */
  readonly requestsPerSecond?: number;
};

/** A fault on a store of any type, so that one list can hold all faults. */
export type AnyFault = { readonly name: string; run(pace: Pace): Promise<Row> };

export type Pace = {
  readonly browsers: number;
  readonly instances: number;
  readonly beforeMs: number;
  readonly afterMs: number;
};

export function fault<T>(given: Fault<T>): AnyFault {
  return { name: given.name, run: (pace) => runFault(given, pace) };
}

const ISSUER = "https://issuer.example";
/** How long the services may take to serve again, in ms on an idle machine. */
const RECOVERY_LIMIT_MS = 30_000;
const HEALTH_CHECK_MS = 200;

async function runFault<T>(given: Fault<T>, pace: Pace): Promise<Row> {
  const backend = await given.open();
  const world = await openWorld(given, backend, given.instances ?? pace.instances);
  try {
    const [first] = world.services;
    if (first === undefined) throw new Error("no instance");
    const { adminToken } = world;
    const verifier = createVerifier({
      adminUrl: first.adminUrl,
      adminToken,
      issuer: ISSUER,
      audience: ISSUER,
      policy: "refuse",
      maxStalenessMs: MAX_STALENESS_MS,
    });
    const { requestsPerSecond } = given;
    const browsers = new Browsers(world, verifier, requestsPerSecond === undefined ? pace.browsers : 0);
    const struck = {
      ...world,
      allowStall(ms: number) {
        browsers.tally.stallUntilMs = performance.now() + ms;
      },
    };
    if (requestsPerSecond === undefined) {
      await verifier.ready;
      await sleep(pace.beforeMs);
      browsers.tally = newTally();
      await given.strike(struck);
    } else {
      browsers.tally = newTally(PATIENCE_MS);
      const over = verifier.ready.then(() => given.strike(struck));
      await browsers.offer(requestsPerSecond, over);
    }
    const recoveredMs = await recovery(world);
    await sleep(pace.afterMs);
    // On a busy machine, the browsers have sent few requests until now.
    if (recoveredMs !== undefined) await untilTrue(() => browsers.tally.requests >= MIN_REQUESTS);
    await browsers.stop();
    verifier.close();
    const { name, allowed, isNoFault = false } = given;
    return { ...browsers.tally, fault: name, recoveredMs, allowed, isNoFault };
  } finally {
    await world.stop();
    await backend.stop();
  }
}

async function openWorld<T>(given: Fault<T>, { env, envOf, parts }: Backend<T>, instances: number) {
  const reuseIntervalMs = given.reuseIntervalMs ?? 2_000;
  const directory = scratch();
  const adminToken = randomBytes(32).toString("base64url");
  const keysFile = join(directory, "keys.json");
  await createRingFile(keysFile, generateRing("ES256", Date.now()));
  const common = {
    ISSUER,
    ADMIN_TOKENS: adminToken,
    KEYS_FILE: keysFile,
    DATA_DIR: join(directory, "data"),
    LOG_LEVEL: "silent",
    DRAIN_DELAY: "1s",
    REUSE_INTERVAL: `${reuseIntervalMs}ms`,
    ...env,
    ...given.env,
  };
  const services: Service[] = [];
  const out = new Set<Service>();
  const add = async () => {
    const service = await startService({ ...common, ...envOf?.(services.length) });
    services.push(service);
    return service;
  };
  const remove = (service: Service) =>
    void services.splice(0, services.length, ...services.filter((s) => s !== service));
  const check = async (service: Service) => {
    const status = await request(service.publicUrl, { path: "/readyz" }).then(
      ({ status }) => status,
      () => 0,
    );
    if (status === 200) out.delete(service);
    else out.add(service);
  };
  for (let at = 0; at < instances; at++) await add();
  const health = setInterval(() => services.map(check), HEALTH_CHECK_MS);
  /** If no instance is ready, any of them is chosen, as load balancers do. */
  const pick = () => {
    const ready = services.filter((service) => !out.has(service));
    const among = ready.length > 0 ? ready : services;
    return among[Math.floor(Math.random() * among.length)] as Service;
  };
  const stop = async () => {
    clearInterval(health);
    await Promise.all(services.map((service) => service.kill9()));
  };
  return {
    ...{ parts, services, adminToken, reuseIntervalMs, add, remove, pick, stop },
    serves: (one: Service) => serves(one, adminToken),
  };
}

/** Returns how long it takes until every instance serves, in ms. */
async function recovery(world: Awaited<ReturnType<typeof openWorld>>): Promise<number | undefined> {
  const endedAt = performance.now();
  const allServe = async () => (await Promise.all(world.services.map(world.serves))).every(Boolean);
  return untilTrue(allServe, RECOVERY_LIMIT_MS).then(
    () => performance.now() - endedAt,
    () => undefined,
  );
}
