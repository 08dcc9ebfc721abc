/** Real processes of a client with one file of tokens, killed at random moments, with clocks that are off, behind a bad network. */
import { appendFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { Transport } from "../../../gen/auth/admin/v1/session_admin_pb.ts";
import { createFileStore } from "../../../src/client/index.ts";
import { clientKey } from "../../support/dpop.ts";
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
  /** R, in ms. */
  readonly reuseIntervalMs: number;
  readonly proves: boolean;
};

export type Outcome = {
  readonly served: number;
  /** How often a process has learned that the session is over. It never is. */
  readonly wrongLogouts: number;
  readonly kills: number;
  readonly lost: number;
  readonly repeated: number;
  /** The longest time that a process took from reading the file to writing it. */
  readonly longestMs: number;
  readonly isLive: boolean;
};

export async function play(settings: Settings): Promise<Outcome> {
  const { processes, tokenLives, tokenLifeMs, reuseIntervalMs: R, proves } = settings;
  const service = await startService({
    REUSE_INTERVAL: `${R}ms`,
    ACCESS_TOKEN_TTL: `${tokenLifeMs}ms`,
    ...{ RATE_LIMIT_REFRESH: "off", RATE_LIMIT_FAILURES: "off" },
  });
  const key = clientKey();
  const login = { clientId: "cli", ...(proves && { dpopJkt: key.thumbprint, transport: Transport.TOKEN }) };
  const { refreshToken, sid } = await logIn(service, login);
  // With a proof time does not matter. Without one a request and its repetition must take effect within R/2.
  const [delayMs, lateMs, requestTimeoutMs] = proves ? [2 * R, 4 * R, 3 * R] : [R / 16, R / 8, 0.4 * R];
  const proxy = await startBadProxy(service.publicUrl, delayMs, lateMs);
  const directory = scratch();
  const [file, history] = [join(directory, "tokens.json"), join(directory, "history")];
  await createFileStore(file).save({ refreshToken });
  writeFileSync(history, `${refreshToken}\n`);
  const orders: Orders = {
    ...{ service: proxy.url, publicUrl: service.publicUrl, file, history, tokenLifeMs, requestTimeoutMs },
    ...(proves && { key: key.privateKey.export({ format: "jwk" }) }),
  };

  const finished: Program[] = [];
  const running: Program[] = [];
  const start = () => {
    const clock = join(directory, `clock-${finished.length + running.length}`);
    appendFileSync(clock, String(Math.round((Math.random() - 0.5) * 2 * HOUR_MS)));
    const env = { ORDERS: JSON.stringify(orders), MOVED_CLOCK: clock };
    running.push(startProgram(process.execPath, ["--import", CLOCK, WORKER], { env }));
  };
  const kill = async () => {
    const [program] = running.splice(Math.floor(Math.random() * running.length), 1);
    if (program === undefined) return;
    program.kill("SIGKILL");
    await program.exited;
    finished.push(program);
  };

  for (let count = 0; count < processes; count++) start();
  const endsAt = performance.now() + tokenLives * tokenLifeMs;
  while (performance.now() < endsAt) {
    await pause(Math.random() * 2 * tokenLifeMs * (5 / processes));
    await kill();
    start();
  }
  const kills = finished.length;
  while (running.length > 0) await kill();
  const lines = finished.flatMap((program) => program.output().split("\n").slice(0, -1));
  const reports = lines.map((line) => line.split(" "));
  const failed = lines.find((line) => !/^(served|valid|ended|unavailable) \d+$/.test(line));
  if (failed !== undefined)
    throw new Error(`a process failed: ${lines.slice(lines.indexOf(failed)).slice(0, 20).join("\n")}`);
  const isLive = (await openAdmin(service).call(admin.getSession, { sessionId: sid }, bearer(service.adminToken))).ok;
  const outcome = {
    served: reports.filter(([what]) => what === "served").length,
    wrongLogouts: reports.filter(([what]) => what === "ended").length,
    ...{ kills, lost: proxy.lost(), repeated: proxy.repeated(), isLive },
    longestMs: Math.max(...reports.map(([, ms]) => Number(ms))),
  };
  await proxy.stop();
  await service.stop();
  return outcome;
}
