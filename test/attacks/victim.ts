/** Measures the service under attack: how much memory it takes, and how long other clients wait meanwhile. */
import { readFileSync } from "node:fs";
import { Agent, request as send } from "node:http";
import { connect, type Socket } from "node:net";
import { expect } from "vitest";
import { machine, table } from "../bench/machine.ts";
import { type Service, startService } from "../support/service.ts";
import { cookie, logIn } from "../support/sessions.ts";

/** Whether the attacks run in their long form, as in `npm run test:attacks`. The short form runs with all tests. */
export const LONG = process.env.ATTACKS === "long";
/** How long the honest client (the bystander) pauses between requests, in ms. */
const BYSTANDER_PAUSE_MS = 5;
/** The addresses of the attacker and of the honest client. Linux has the whole network 127.0.0.0/8 on its loopback interface. */
export const ATTACKER = "127.0.0.1";
const BYSTANDER = "127.0.0.9";

const MIB = 1024 * 1024;

export type Row = {
  readonly attack: string;
  /** A description of what was sent. */
  readonly sent: string;
  readonly serverErrors: number;
  readonly failedBystanders: number;
  readonly rssGrowthMib: number;
  readonly p99Ms: number;
  /**
   * The 99th percentile of the response times of a second service, which is not attacked, measured at the same time. It shows how busy the
   * machine is.
   */
  readonly controlP99Ms: number;
};

type Attack = {
  readonly service: Service;
  /** Opens a connection of the attacker, which is closed when the attack is over. */
  dial(url?: string): Socket;
  /** Counts the status of a response. */
  saw(status: number): void;
};

export const rows: Row[] = [];
/** The number of sessions of the honest client. With this many, each session stays far below its rate limit. */
const SESSIONS = 40;
const refreshTokens = new Map<number, readonly string[]>();
const controls = new Map<number, Service>();

async function startVictim(env: Readonly<Record<string, string>> = {}): Promise<Service> {
  // With the long reuse interval, the honest client may present each token any number of times.
  const service = await startService({ LOG_LEVEL: "info", DOCS: "true", REUSE_INTERVAL: "300s", ...env });
  const logins = await Promise.all(Array.from({ length: SESSIONS }, () => logIn(service)));
  refreshTokens.set(
    service.pid,
    logins.map(({ refreshToken }) => refreshToken),
  );
  return service;
}

/** Starts a service for the attack, the victim, and a second one that is not attacked, for comparison. */
export async function startVictimAndControl(env: Readonly<Record<string, string>> = {}) {
  const [victim, control] = await Promise.all([startVictim(env), startVictim(env)]);
  controls.set(victim.pid, control);
  const stop = async () => (await Promise.all([victim.stop(), control.stop()]))[0];
  return { ...victim, stop };
}

function residentBytes(pid: number): number {
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) * 1024;
}

/** Starts an honest client at another address. It measures how long each of its requests took, in ms, and how many failed. */
function startBystander({ publicUrl, adminUrl }: Service, refreshTokens: readonly string[]) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const times: number[] = [];
  let failures = 0;
  let isOver = false;
  const ask = (url: URL, method: string, headers: Record<string, string>) =>
    new Promise<number>((resolve) => {
      const outgoing = send(url, { agent, method, headers, localAddress: BYSTANDER }, (incoming) => {
        incoming.resume().once("end", () => resolve(incoming.statusCode ?? 0));
      });
      outgoing.once("error", () => resolve(0)).end();
    });
  const steps = [
    (turn: number) =>
      ask(new URL("/v1/auth/refresh", publicUrl), "POST", {
        ...cookie(refreshTokens[(turn >> 1) % refreshTokens.length] as string),
        "content-length": "0",
      }),
    () => ask(new URL("/healthz", adminUrl), "GET", {}),
  ];
  const asking = (async () => {
    for (let turn = 0; !isOver || times.length < steps.length; turn++) {
      const begin = performance.now();
      if ((await steps[turn % steps.length]?.(turn)) !== 200) failures++;
      times.push(performance.now() - begin);
      await new Promise((resolve) => setTimeout(resolve, BYSTANDER_PAUSE_MS));
    }
  })();
  return async () => {
    isOver = true;
    await asking;
    agent.destroy();
    times.sort((a, b) => a - b);
    return { failures, p99Ms: times[Math.floor(times.length * 0.99)] ?? 0 };
  };
}

/** The greatest growth of resident memory during one attack, in MiB. */
const MAX_GROWTH_MIB = 160;
/**
 * How long requests of the honest client may take during an attack (99th percentile), in ms, beyond `BUSY_FACTOR` times their duration
 * without an attack.
 */
const MAX_P99_MS = 500;
const BUSY_FACTOR = 10;

/** Checks that an attack stayed within its limits (docs/reference/limits.md). */
export function expectWithinBounds(row: Row | undefined, maxGrowthMib = MAX_GROWTH_MIB): void {
  expect(row).toMatchObject({ serverErrors: 0, failedBystanders: 0 });
  if (row === undefined) return;
  expect(row.rssGrowthMib).toBeLessThan(maxGrowthMib);
  // The short form runs beside all other tests, so its limit is higher.
  const bound = (LONG ? 1 : 8) * (MAX_P99_MS + BUSY_FACTOR * row.controlP99Ms);
  expect(row.p99Ms).toBeLessThan(bound);
}

/** Runs an attack while an honest client refreshes sessions. @param sent what the attack sends, in words */
export async function underAttack(
  service: Service,
  attack: string,
  sent: string,
  run: (attack: Attack) => Promise<void>,
): Promise<Row> {
  const sockets: Socket[] = [];
  let serverErrors = 0;
  const before = residentBytes(service.pid);
  let most = before;
  const sampler = setInterval(() => {
    most = Math.max(most, residentBytes(service.pid));
  }, 20);
  const control = controls.get(service.pid);
  if (control === undefined) throw new Error("no control");
  const bystander = startBystander(service, refreshTokens.get(service.pid) ?? []);
  const besides = startBystander(control, refreshTokens.get(control.pid) ?? []);
  await run({
    service,
    dial(url = service.publicUrl) {
      const { hostname, port } = new URL(url);
      const socket = connect({ port: Number(port), host: hostname, localAddress: ATTACKER });
      socket.on("error", () => {});
      sockets.push(socket);
      return socket;
    },
    saw(status) {
      // These statuses are no failures: 501 and 505 refuse unsupported HTTP, and 504 reports that the caller's own deadline expired.
      if (status >= 500 && status !== 501 && status !== 504 && status !== 505) serverErrors++;
    },
  });
  const [{ failures, p99Ms }, { p99Ms: controlP99Ms }] = await Promise.all([bystander(), besides()]);
  clearInterval(sampler);
  most = Math.max(most, residentBytes(service.pid));
  for (const socket of sockets) socket.destroy();
  const row = {
    attack,
    sent,
    serverErrors,
    failedBystanders: failures,
    rssGrowthMib: Math.round((most - before) / MIB),
    p99Ms: Math.round(p99Ms * 10) / 10,
    controlP99Ms: Math.round(controlP99Ms * 10) / 10,
  };
  rows.push(row);
  return row;
}

/** Resolves when a socket is closed, or has taken all that was written to it. */
export function written(socket: Socket, bytes: Buffer | string): Promise<void> {
  return new Promise((resolve) => {
    if (socket.destroyed) return resolve();
    socket.once("close", () => resolve());
    socket.write(bytes, () => resolve());
  });
}

export const closed = (socket: Socket): Promise<void> =>
  new Promise((resolve) => (socket.destroyed ? resolve() : void socket.once("close", () => resolve())));

/** Returns the table of all attacks so far. */
export function report(): string {
  const head = ["attack", "sent", "5xx", "others' failures", "RSS growth, MiB", "others' p99, ms", "without attack"];
  const lines = rows.map((row) => [
    row.attack,
    row.sent,
    ...[row.serverErrors, row.failedBystanders, row.rssGrowthMib, row.p99Ms, row.controlP99Ms].map(String),
  ]);
  return `${table(head, lines)}\n\n${machine()}`;
}
