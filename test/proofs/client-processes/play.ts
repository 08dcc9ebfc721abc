/**
 * Runs real processes of a client that share one file of tokens. They are killed at random moments, have wrong clocks and a bad network.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { Transport } from "../../../gen/auth/admin/v1/session_admin_pb.ts";
import { createFileStore, generateProofKey, proofKeyThumbprint } from "../../../src/client/index.ts";
import { type Program, startProgram } from "../../support/processes.ts";
import { scratch, startService } from "../../support/service.ts";
import { admin, bearer, logIn, openAdmin } from "../../support/sessions.ts";
import type { Orders } from "./orders.ts";
import { startBadProxy } from "./proxy.ts";

const WORKER = join(import.meta.dirname, "worker.ts");
const CLOCK = join(import.meta.dirname, "../../support/moved-clock-preload.ts");
const HOUR_MS = 3_600_000;

export type Settings = {
  readonly processes: number;
  readonly tokenLives: number;
  readonly tokenLifeMs: number;
  /** The reuse interval R, in ms. */
  readonly reuseIntervalMs: number;
  readonly proves: boolean;
};

export type Outcome = {
  readonly served: number;
  /** How often a process was informed that the session is over. Each of these is wrong, because the session never ends. */
  readonly wrongLogouts: number;
  /** How many refreshes failed because a request or response was lost, or took too long. */
  readonly unavailable: number;
  readonly kills: number;
  readonly lost: number;
  readonly repeated: number;
  /** The longest time that a process took from reading the file to writing it, in ms. */
  readonly longestMs: number;
  readonly isLive: boolean;
};

const linesOf = (programs: readonly Program[]) =>
  programs.flatMap((program) => program.output().split("\n").slice(0, -1));
const count = (programs: readonly Program[], outcome: string) =>
  linesOf(programs).filter((line) => line.startsWith(`${outcome} `)).length;

export async function play(settings: Settings): Promise<Outcome> {
  const { processes, tokenLives, tokenLifeMs, reuseIntervalMs: R, proves } = settings;
  // Clients with a proof tolerate any delay. Without a proof, a request and its repetition must take effect within half of the reuse
  // interval (R/2).
  const [delayMs, lateMs, requestTimeoutMs] = proves ? [R, 3 * R, 1.5 * R] : [R / 16, R / 8, 0.4 * R];
  const proxy = await startBadProxy(delayMs, lateMs);
  const service = await startService({
    ...{ ISSUER: proxy.url, RATE_LIMIT_REFRESH: "off", RATE_LIMIT_FAILURES: "off" },
    ...{ REUSE_INTERVAL: `${R}ms`, ACCESS_TOKEN_TTL: `${tokenLifeMs}ms` },
  });
  proxy.direct(service.publicUrl);
  const key = await generateProofKey();
  const bound = { dpopJkt: await proofKeyThumbprint(key), transport: Transport.TOKEN };
  const { refreshToken, sid } = await logIn(service, { clientId: "cli", ...(proves && bound) });
  const directory = scratch();
  const [file, history] = [join(directory, "tokens.json"), join(directory, "history")];
  await createFileStore(file).save({ refreshToken, ...(proves && { key }) });
  writeFileSync(history, `${refreshToken}\n`);
  const orders = { service: proxy.url, file, history, tokenLifeMs, requestTimeoutMs };

  const finished: Program[] = [];
  const running: Program[] = [];
  const start = () => {
    const started = finished.length + running.length;
    const clock = join(directory, `clock-${started}`);
    writeFileSync(clock, String(Math.round((Math.random() - 0.5) * 2 * HOUR_MS)));
    const own: Orders = { ...orders, presents: proves && started % 2 === 0 ? "any generation" : "the file" };
    const env = { ORDERS: JSON.stringify(own), MOVED_CLOCK: clock };
    running.push(startProgram(process.execPath, ["--import", CLOCK, WORKER], { env }));
  };
  const kill = async () => {
    const [program] = running.splice(Math.floor(Math.random() * running.length), 1);
    if (program === undefined) return;
    program.kill("SIGKILL");
    await program.exited;
    finished.push(program);
  };

  while (running.length < processes) start();
  const endsAt = performance.now() + tokenLives * tokenLifeMs;
  const total = (outcome: string) => count([...finished, ...running], outcome);
  // A busy machine gets more time, until each process has refreshed about twice.
  while (performance.now() < endsAt || (total("served") < 2 * processes && total("ended") === 0)) {
    await pause(Math.random() * tokenLifeMs * Math.min(2, 40 / processes));
    await kill();
    start();
  }
  const kills = finished.length;
  while (running.length > 0) await kill();
  const lines = linesOf(finished);
  const failed = lines.find((line) => !/^(served|valid|ended|unavailable) \d+$/.test(line));
  if (failed !== undefined)
    throw new Error(`a process failed: ${lines.slice(lines.indexOf(failed)).slice(0, 20).join("\n")}`);
  const isLive = (await openAdmin(service).call(admin.getSession, { sessionId: sid }, bearer(service.adminToken))).ok;
  const outcome = {
    served: count(finished, "served"),
    wrongLogouts: count(finished, "ended"),
    unavailable: count(finished, "unavailable"),
    ...{ kills, lost: proxy.lost(), repeated: proxy.repeated(), isLive },
    longestMs: Math.max(...lines.map((line) => Number(line.split(" ")[1]))),
  };
  await proxy.stop();
  await service.stop();
  return outcome;
}
