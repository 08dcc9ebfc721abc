// Measures for how long after a logout an isolate in workerd, which polls for revocations, still accepts the token; and whether it
// accepts tokens during an outage of the origin for longer than its maximum staleness.
//
//     npm run bench:edge [-- --logouts 100 --interval 2000 --staleness 10000 --outages 3]
//
// Each time is measured from the acknowledgement of the logout to the moment when the last accepted request was sent. Ten tokens at a
// time are presented every 50 ms.
import { loadavg } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { type DeadToken, present, startEdge } from "../runtimes/edge.ts";
import { logIn } from "../support/sessions.ts";

const { values } = parseArgs({
  options: {
    logouts: { type: "string", default: "100" },
    interval: { type: "string", default: "2000" },
    staleness: { type: "string", default: "10000" },
    outages: { type: "string", default: "3" },
  },
});
const [logouts, outages] = [Number(values.logouts), Number(values.outages)];
const times = { pollIntervalMs: Number(values.interval), maxStalenessMs: Number(values.staleness) };
const AT_ONCE = 10;
const PAUSE_MS = 50;
const MARGIN_MS = 2_000;

function describe(name: string, tokens: readonly DeadToken[], boundMs: number): void {
  const sorted = tokens.map(({ acceptedForMs }) => acceptedForMs).sort((one, other) => one - other);
  const at = (share: number) => `${Math.round(sorted[Math.ceil(share * sorted.length) - 1] ?? 0)} ms`;
  const beyond = sorted.filter((ms) => ms > boundMs).length;
  const load = loadavg()[0]?.toFixed(1);
  console.log(
    `${name}: ${sorted.length} logouts, accepted for p50 ${at(0.5)}, max ${at(1)}; beyond ${boundMs} ms: ${beyond} (load ${load})`,
  );
}

const edge = await startEdge(times);
const atOnce = (one: () => Promise<DeadToken>) => Promise.all(Array.from({ length: AT_ONCE }, one));

const prompt: DeadToken[] = [];
while (prompt.length < logouts) {
  const one = async () => {
    await sleep(Math.random() * times.pollIntervalMs);
    return present(
      edge,
      (verdict) => verdict === "revoked",
      () => sleep(PAUSE_MS),
    );
  };
  prompt.push(...(await atOnce(one)));
}
describe("a logout", prompt, times.pollIntervalMs);

const unreported: DeadToken[] = [];
for (let outage = 0; outage < outages; outage++) {
  const isOver = (_: unknown, sinceMs: number) => sinceMs > times.maxStalenessMs + MARGIN_MS;
  const begun = Promise.withResolvers<void>();
  let ended = 0;
  // Waits until all logouts are acknowledged. At that moment the outage of the origin begins.
  const pause = async () => {
    if (++ended === AT_ONCE) {
      edge.relay.isDown = true;
      begun.resolve();
    }
    await begun.promise;
    await sleep(PAUSE_MS);
  };
  const tokens = await atOnce(() => present(edge, isOver, pause));
  unreported.push(...tokens);
  edge.relay.isDown = false;
  const { accessToken, subject } = await logIn(edge.service);
  while ((await edge.verdictOf(accessToken)) !== subject) await sleep(PAUSE_MS);
}
describe("a logout when the origin cannot be reached", unreported, times.maxStalenessMs);
await edge.stop();
process.exit(0);
