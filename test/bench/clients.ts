// Measures what clients that are not browsers cost: the CPU time (user and system) that the service needs for them, compared with other
// clients.
//
//     npm run bench:clients [-- --part cookie|proof] [--rounds 20] [--starts 3] [--baseline <another checkout>]
//
// - `cookie`: refreshes without a key. One service has OAUTH_ENDPOINTS and DPOP_NONCES, two services do not have them, and with
//   `--baseline` one runs another checkout. The two equal services show how much processes of one program differ.
// - `proof`: a refresh at the token endpoint with a proof (ES256), a refresh there without a proof, and the bare check of the signature.
import { createPublicKey, verify } from "node:crypto";
import { loadavg } from "node:os";
import { parseArgs } from "node:util";
import { Redis } from "ioredis";
import { clientKey } from "../support/dpop.ts";
import { median } from "../support/median.ts";
import { byCookie, byGrant, Client, measure, proveGrant } from "./clients/load.ts";
import { type Estimate, estimate, ratioOf } from "./clients/statistics.ts";
import { startRedis } from "./refresh/processes.ts";
import { createKeys, logIn, startService } from "./refresh/service.ts";

const { values } = parseArgs({
  options: {
    part: { type: "string" },
    rounds: { type: "string", default: "20" },
    starts: { type: "string", default: "3" },
    baseline: { type: "string" },
  },
});
const [rounds, starts] = [Number(values.rounds), Number(values.starts)];
const CLIENTS = 16;
/** The number of refreshes of each client in a turn. Together they take about 200 ms. */
const REFRESHES = 40;
const WARM_UP_TURNS = 8;
const hasPart = (part: string) => values.part === undefined || values.part === part;
const OFF = { OAUTH_ENDPOINTS: "off" };

const key = clientKey();
const keysFile = await createKeys();

/** One round of the measurement: the CPU time of one refresh in µs, by the name of the client. */
type Round = Readonly<Record<string, number>>;
type Contender = { readonly turn: () => Promise<number>; readonly stop: () => Promise<void>; readonly bytes: string };

async function contend(env: Record<string, string>, way?: "grant" | "proof", root?: string): Promise<Contender> {
  const redis = await startRedis();
  const service = await startService({ redisPort: redis.port, keysFile }, env, "server", root);
  const proven = way === "proof" ? key : undefined;
  const sessions = await logIn(service, CLIENTS, proven && { dpopJkt: proven.thumbprint });
  const stored = await storedBytes(redis.port);
  const form = byGrant(sessions[0]?.refreshToken.length ?? 0);
  const clients = sessions.map(
    ({ refreshToken }) => new Client(way === undefined ? byCookie : form, service, refreshToken),
  );
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
  const contenders = new Map<string, Contender>();
  if (hasPart("cookie")) {
    contenders.set("on", await contend({ DPOP_NONCES: "on" }));
    contenders.set("off", await contend(OFF));
    contenders.set("off again", await contend(OFF));
    if (values.baseline !== undefined) contenders.set("baseline", await contend({}, undefined, values.baseline));
  }
  if (hasPart("proof")) {
    contenders.set("grant", await contend({}, "grant"));
    contenders.set("proof", await contend({}, "proof"));
  }
  const turns = [...contenders].map(([name, { turn }]) => [name, turn] as const);
  if (hasPart("proof")) turns.push(["check", checkSignatures]);
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
const ratio = (one: string, other: string) => show(estimate(blocks, ratioOf(one, other)), 3);
const difference = (figure: (round: Round) => number) => show(estimate(blocks, medianOf(figure)), 1, " µs");

for (const [name, of] of bytes) console.log(`${name}: ${difference((round) => at(round, name))}, bytes: ${of}`);
if (hasPart("cookie")) {
  console.log(`cookie, on / off: ${ratio("on", "off")}`);
  console.log(`cookie, off again / off: ${ratio("off again", "off")}`);
  if (values.baseline !== undefined) console.log(`cookie, on / baseline: ${ratio("on", "baseline")}`);
}
if (hasPart("proof")) {
  const proof = (round: Round) => at(round, "proof") - at(round, "grant");
  console.log(`a proof: ${difference(proof)}`);
  console.log(`a bare check of ES256: ${difference((round) => at(round, "check"))}`);
  console.log(`a proof beyond one check: ${difference((round) => proof(round) - at(round, "check"))}`);
}
console.log(`(${starts} starts × ${rounds} rounds, load ${loadavg()[0]?.toFixed(1)})`);
process.exit(0);
