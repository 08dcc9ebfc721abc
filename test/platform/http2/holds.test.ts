/** Networks that hold all data for a while and deliver it later, between verifiers with default options and the real service. */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { startFaultyProxy } from "../../support/faulty-proxy.ts";
import { type Program, startProgram } from "../../support/processes.ts";
import { startService } from "../../support/service.ts";
import { logIn } from "../../support/sessions.ts";
import { until } from "../../support/until.ts";

/**
 * With HOLDS=long the network holds all data 500 times, each time for 4 to 12 s. Otherwise it does so a few times, each time until the
 * verifier has noticed it.
 */
const LONG = process.env.HOLDS === "long";
const VERIFIERS = LONG ? 100 : 4;
const ROUNDS = LONG ? 5 : 1;
const [SHORTEST_MS, LONGEST_MS] = [4000, 12_000];
const [ISSUER, AUDIENCE] = ["https://auth.example", "https://api.example"];
const HOST = join(import.meta.dirname, "verifiers.ts");

/** Resolves when the latest verdict of a verifier is `result`. Rejects if the process of the verifiers ends before that. */
async function decided(host: Program, index: number, result: string): Promise<void> {
  const lines = new RegExp(`^${index} (.*)$`, "gm");
  let ended = false;
  void host.exited.then(() => {
    ended = true;
  });
  while ([...host.output().matchAll(lines)].at(-1)?.[1] !== result) {
    if (ended) throw new Error(`the process of the verifiers has ended:\n${host.output().slice(-2000)}`);
    await sleep(50);
  }
}

test("a silent network ends no process, and its verifiers go on", { timeout: 900_000 }, async () => {
  const service = await startService({ ISSUER, AUDIENCE, ACCESS_TOKEN_TTL: "1h" });
  onTestFinished(async () => void (await service.kill9()));
  const { accessToken: token } = await until(() => logIn(service));
  const target = Number(new URL(service.adminUrl).port);
  const proxies = await Promise.all(Array.from({ length: VERIFIERS }, () => startFaultyProxy(target)));
  onTestFinished(async () => void (await Promise.all(proxies.map((proxy) => proxy.stop()))));
  const urls = proxies.map(({ port }) => `http://127.0.0.1:${port}`);
  const { adminToken } = service;
  const settings = JSON.stringify({ urls, adminToken, issuer: ISSUER, audience: AUDIENCE, token });
  const host = startProgram(process.execPath, [HOST, settings]);
  onTestFinished(() => host.stop());
  let holds = 0;
  await Promise.all(
    proxies.map(async (proxy, index) => {
      for (let round = 0; round < ROUNDS; round++) {
        await decided(host, index, "ok");
        proxy.hold();
        if (LONG) await sleep(SHORTEST_MS + Math.random() * (LONGEST_MS - SHORTEST_MS));
        else await decided(host, index, "unavailable");
        proxy.release();
        holds++;
        await decided(host, index, "ok");
      }
    }),
  );
  process.stdout.write(`holds: ${holds}, exits: 0\n`);
  expect(holds).toBe(VERIFIERS * ROUNDS);
});
