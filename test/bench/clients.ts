// Measures what a proof of possession costs: the CPU time (user and system) that the service needs for a refresh at the token endpoint with a
// proof (ES256), for one without, and for the bare check of the signature.
//
//     npm run bench:clients [-- --rounds 20] [--starts 3]
import { createPublicKey, verify } from "node:crypto";
import { loadavg } from "node:os";
import { parseArgs } from "node:util";
import { Redis } from "ioredis";
import { clientKey } from "../support/dpop.ts";
import { median } from "../support/median.ts";
import { byGrant, Client, measure, proveGrant } from "./clients/load.ts";
import { type Estimate, estimate } from "./clients/statistics.ts";
import { startRedis } from "./refresh/processes.ts";
import { createKeys, logIn, startService } from "./refresh/service.ts";

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "20" },
    starts: { type: "string", default: "3" },
  },
});
const [rounds, starts] = [Number(values.rounds), Number(values.starts)];
const CLIENTS = 16;
/** The number of refreshes of each client in a turn. Together they take about 200 ms. */
const REFRESHES = 40;
const WARM_UP_TURNS = 8;

const key = clientKey();
const keysFile = await createKeys();

/** One round of the measurement: the CPU time of one refresh in µs, by the name of the client. */
type Round = Readonly<Record<string, number>>;
type Contender = { readonly turn: () => Promise<number>; readonly stop: () => Promise<void>; readonly bytes: string };

async function contend(way: "grant" | "proof"): Promise<Contender> {
  const redis = await startRedis();
  const service = await startService({ redisPort: redis.port, keysFile });
  const proven = way === "proof" ? key : undefined;
  const sessions = await logIn(service, CLIENTS, proven && { dpopJkt: proven.thumbprint });
  const stored = await storedBytes(redis.port);
  const form = byGrant(sessions[0]?.refreshToken.length ?? 0);
  const clients = sessions.map(({ refreshToken }) => new Client(form, service, refreshToken));
  const turn = () => measure(service, clients, REFRESHES, proven);
  for (let done = 0; done < WARM_UP_TURNS; done++) await turn();
  const stop = async () => {
    await service.stop();
    await redis.stop();
  };
  return { turn, stop, bytes: `response ${clients[0]?.responseBytes}, stored ${Math.round(stored / CLIENTS)}` };
}

/** Returns how much memory all keys in Redis take, in bytes, including keys that belong to no session. */
async function storedBytes(port: number): Promise<number> {
  const redis = new Redis({ port, host: "127.0.0.1" });
  let bytes = 0;
  for (const name of await redis.keys("*")) bytes += (await redis.memory("USAGE", name)) ?? 0;
  redis.disconnect();
  return bytes;
}

/** Verifies as many signatures of proofs as the service does in one turn of the measurement. */
async function checkSignatures(): Promise<number> {
  const publicKey = createPublicKey({ key: { ...key.jwk }, format: "jwk" });
  const proof = proveGrant(key);
  const end = proof.lastIndexOf(".");
  const [input, signature] = [Buffer.from(proof.slice(0, end)), Buffer.from(proof.slice(end + 1), "base64url")];
  const before = process.cpuUsage();
  for (let done = 0; done < CLIENTS * REFRESHES; done++) {
    verify("sha256", input, { key: publicKey, dsaEncoding: "ieee-p1363" }, signature);
  }
  const { user, system } = process.cpuUsage(before);
  return (user + system) / (CLIENTS * REFRESHES);
}

const blocks: Round[][] = [];
const bytes = new Map<string, string>();
for (let start = 0; start < starts; start++) {
  const contenders = [
    ["grant", await contend("grant")],
    ["proof", await contend("proof")],
  ] as const;
  const turns: (readonly [name: string, turn: () => Promise<number>])[] = [["check", checkSignatures]];
  for (const [name, { turn }] of contenders) turns.push([name, turn]);
  const block: Round[] = [];
  for (let round = 0; round < rounds; round++) {
    const figures: Record<string, number> = {};
    // The order of the contenders rotates, so that each of them is equally often the first and the last.
    for (const at of turns.keys()) {
      const [name, turn] = turns[(at + round) % turns.length] as (typeof turns)[number];
      figures[name] = await turn();
    }
    block.push(figures);
  }
  blocks.push(block);
  for (const [name, contender] of contenders) {
    bytes.set(name, contender.bytes);
    await contender.stop();
  }
}

const show = ({ value, low, high }: Estimate, digits: number, unit = "") =>
  `${value.toFixed(digits)}${unit} (95 %: ${low.toFixed(digits)} to ${high.toFixed(digits)})`;
const medianOf = (figure: (round: Round) => number) => (of: readonly Round[]) => median(of.map(figure));
const at = (round: Round, name: string) => round[name] ?? Number.NaN;
const difference = (figure: (round: Round) => number) => show(estimate(blocks, medianOf(figure)), 1, " µs");

for (const [name, of] of bytes) console.log(`${name}: ${difference((round) => at(round, name))}, bytes: ${of}`);
const proof = (round: Round) => at(round, "proof") - at(round, "grant");
console.log(`a proof: ${difference(proof)}`);
console.log(`a bare check of ES256: ${difference((round) => at(round, "check"))}`);
console.log(`a proof beyond one check: ${difference((round) => proof(round) - at(round, "check"))}`);
console.log(`(${starts} starts × ${rounds} rounds, load ${loadavg()[0]?.toFixed(1)})`);
process.exit(0);
