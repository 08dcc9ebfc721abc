// Measures how soon after the acknowledgement of a logout, or of a change of a session, the verifiers in TypeScript, in Go and in Python refuse
// the token. Each verifier in Go and in Python is a separate process, and those in TypeScript share one. All follow one service on loopback,
// one language after the other.
//
//     npm run bench:logout [-- --verifiers 50] [--rounds 40] [--changes] [--upstream] [--beside <logouts a second>]
//     npm run bench:logout -- --watchers 900 --beside 100 [--instances 1]
//
// With --upstream an identity provider ends the sessions, by a logout token for each. With --watchers, plain readers of the feed are
// measured in place of verifiers, on one instance with the embedded store, or several on Redis: an admin listener accepts at most 1,000
// connections.
//
// Each time is measured from the acknowledgement to the first refusal of a verifier, which checks the token every 5 ms. What a verifier
// takes longer than a plain reader of the feed is its own delay. Other load on the machine distorts the figures, so the load average is
// printed with them.
import { fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { AccessTokenPolicy } from "../../gen/auth/admin/v1/session_admin_pb.ts";
import { createVerifier } from "../../src/verifier/index.ts";
import { sendLogout, startIssuer } from "../support/logout-token.ts";
import { serverVersion, startRedis } from "../support/redis.ts";
import { startService, withKeys } from "../support/service.ts";
import { admin, bearer, type LoggedIn, logIn, message, openAdmin, somebody } from "../support/sessions.ts";
import { type Follower, type FollowOptions, LANGUAGES, startFollower } from "../support/verifier/languages.ts";
import { logOut, startBeside, type Urls } from "./logout/beside.ts";
import { startWatchers } from "./logout/watchers.ts";
import { machine, table } from "./machine.ts";
import { cpuTime } from "./refresh/proc.ts";

type Question = { readonly id: number; readonly index: number; readonly token: string; readonly isUntil: boolean };
type Decision = { readonly id: number; readonly verdict: string; readonly atMs: number };
type Verifiers = readonly Pick<Follower, "verdictOf" | "refusedAtMs" | "stop">[];

const [ISSUER, AUDIENCE] = ["https://auth.example", "https://api.example"];

/** The first rounds, in which processes start and code is compiled, are not counted. */
const WARM_UP_ROUNDS = 20;

/** How long the logouts beside are measured alone, without watchers, in ms. */
const ALONE_MS = 5_000;

const nowMs = () => performance.timeOrigin + performance.now();

if (process.argv[2] === "verify") verify();
else await measure();

/** Runs in a process of its own, with all verifiers in TypeScript. */
function verify(): void {
  const verifiers: ReturnType<typeof createVerifier>[] = [];
  process.on("message", async (order: { readonly options: FollowOptions; readonly count: number } | Question) => {
    if ("options" in order) {
      for (let index = 0; index < order.count; index++) verifiers.push(createVerifier(order.options));
      await Promise.all(verifiers.map(({ ready }) => ready));
      process.send?.("ready");
      return;
    }
    const { id, index, token, isUntil } = order;
    let verdict = await verifiers[index]?.verify(token);
    for (; isUntil && verdict?.ok; verdict = await verifiers[index]?.verify(token)) await sleep(5);
    const decision: Decision = { id, verdict: verdict?.ok ? "accepted" : (verdict?.reason ?? "none"), atMs: nowMs() };
    process.send?.(decision);
  });
}

async function startHere(options: FollowOptions, count: number): Promise<Verifiers> {
  const child = fork(import.meta.filename, ["verify"]);
  child.send({ options, count });
  await once(child, "message");
  const asked = new Map<number, (decision: Decision) => void>();
  child.on("message", (decision: Decision) => asked.get(decision.id)?.(decision));
  let last = 0;
  const ask = (index: number, token: string, isUntil: boolean) => {
    const id = ++last;
    child.send({ id, index, token, isUntil } satisfies Question);
    return new Promise<Decision>((resolve) => asked.set(id, resolve));
  };
  return Array.from({ length: count }, (_, index) => ({
    verdictOf: async (token) => (await ask(index, token, false)).verdict,
    refusedAtMs: async (token) => (await ask(index, token, true)).atMs,
    stop: () => child.kill(),
  }));
}

async function startThere(build: () => Promise<readonly [string, ...string[]]>, options: FollowOptions, count: number) {
  const command = await build();
  const followers = Array.from({ length: count }, () => startFollower(command, options));
  await Promise.all(followers.map((follower) => follower.reported("ready")));
  return followers;
}

async function change({ adminUrl, adminToken }: Urls, { sid }: LoggedIn): Promise<void> {
  const update = { sessionId: sid, claims: { role: "user" }, accessTokens: AccessTokenPolicy.REFRESH };
  message(await openAdmin({ adminUrl }).call(admin.updateSession, update, bearer(adminToken)));
}

async function measure(): Promise<void> {
  const { values } = parseArgs({
    options: {
      verifiers: { type: "string", default: "50" },
      rounds: { type: "string", default: "40" },
      changes: { type: "boolean", default: false },
      upstream: { type: "boolean", default: false },
      beside: { type: "string", default: "0" },
      watchers: { type: "string" },
      instances: { type: "string", default: "1" },
    },
  });
  const rounds = Number(values.rounds);
  // The load of this measurement is no reason to refuse calls.
  const limits = { OVERLOAD_MAX_LOOP_DELAY: "10s", MAX_CONNECTIONS_PER_ADDRESS: "20000" };
  const provider = await startIssuer();
  const env = { ISSUER, AUDIENCE, ...limits, ...(values.upstream && provider.env) };
  const [service, ...others] = await startInstances(Number(values.instances), env);
  const instances = [service, ...others];
  const cpuUsed = () => instances.reduce((sum, { pid }) => sum + (cpuTime(pid) ?? Number.NaN), 0);
  /** Returns a function that returns the CPU time of all instances since this call, in percent of a core. */
  const measureCore = () => {
    const [cpuBefore, startedAt] = [cpuUsed(), nowMs()];
    return () => ((100_000 * (cpuUsed() - cpuBefore)) / (nowMs() - startedAt)).toFixed(0);
  };
  const { issuer } = provider;
  const endUpstream = async ({ subject: sub }: LoggedIn) => {
    const response = await sendLogout(service, await provider.sign({ sub }));
    if (response.status !== 200) throw new Error(`the back-channel logout responds ${response.status}`);
  };
  const [what, end] = values.upstream
    ? ["upstream logouts", endUpstream]
    : values.changes
      ? ["changes", (session: LoggedIn) => change(service, session)]
      : ["logouts", (session: LoggedIn) => logOut(service, session)];
  const { adminUrl, adminToken } = service;
  const options = { adminUrl, adminToken, issuer: ISSUER, audience: AUDIENCE, policy: "refuse" } as const;
  const count = Number(values.verifiers);
  const languages: readonly (readonly [name: string, start: () => Promise<Verifiers>])[] = [
    [`${count} verifiers in TypeScript`, () => startHere(options, count)],
    ...LANGUAGES.map(
      ({ name, build }) => [`${count} verifiers in ${name}`, () => startThere(build, options, count)] as const,
    ),
  ];
  const watchersAlone = [[`${values.watchers} watchers`, async (): Promise<Verifiers> => []]] as const;
  const urls = instances.map((instance) => instance.adminUrl);
  const rows: string[][] = [];
  for (const [name, start] of values.watchers === undefined ? languages : watchersAlone) {
    const followers = await start();
    const watchers = await startWatchers(urls, adminToken, Number(values.watchers ?? 1));
    const [delays, beyond]: [number[], number[]] = [[], []];
    const stopBeside = startBeside(service, Number(values.beside));
    let core = measureCore();
    for (let round = -WARM_UP_ROUNDS; round < rounds; round++) {
      if (round === 0) core = measureCore();
      // The service may just be closing the idle connection of the previous round.
      const subject = somebody();
      const login = { subject, ...(values.upstream && { upstream: { issuer, subject } }) };
      const session = await logIn(service, login).catch(() => logIn(service, login));
      const before = await Promise.all(followers.map((follower) => follower.verdictOf(session.accessToken)));
      if (before.some((verdict) => verdict !== "accepted")) throw new Error(`before the end: ${before}`);
      const arrivals = watchers.arrivalsOf(session.sid);
      const refusals = followers.map((follower) => follower.refusedAtMs(session.accessToken));
      await end(session);
      const acknowledgedAt = nowMs();
      const [arrivedAt, ...times] = await Promise.all([arrivals, ...refusals]);
      if (round < 0) continue;
      delays.push(...(followers.length === 0 ? arrivedAt : times).map((time) => time - acknowledgedAt));
      beyond.push(...times.map((time) => time - Math.max(...arrivedAt)));
    }
    const used = core();
    for (const follower of [...followers, watchers]) follower.stop();
    core = measureCore();
    await sleep(ALONE_MS);
    const usedAlone = core();
    rows.push([name, ...sharesOf(delays), String(await stopBeside()), `${used} %`, `${usedAlone} %`]);
    if (followers.length > 0) console.error(`${name}: after a plain reader of the feed ${sharesOf(beyond).join(", ")}`);
  }
  const title = [
    `${rounds} ${what}, until it is refused by`,
    "p50",
    "p99",
    "most",
    "logouts a second beside",
    "of a core",
    "of it without watchers",
  ];
  console.log(`${table(title, rows)}\n\n${machine(serverVersion())}`);
  process.exit(0);
}

/** Starts one instance on the embedded store, or several on one Redis. */
async function startInstances(count: number, env: Readonly<Record<string, string>>) {
  if (count === 1) return [await startService(env)] as const;
  const redis = await startRedis();
  const shared = { ...env, REDIS_URL: redis.url, DATA_DIR: withKeys(), ADMIN_TOKENS: "a".repeat(40) };
  const others = Array.from({ length: count - 1 }, () => startService(shared));
  return [await startService(shared), ...(await Promise.all(others))] as const;
}

/** Returns the median, the 99th percentile and the largest value. */
function sharesOf(values: readonly number[]): string[] {
  const sorted = values.toSorted((one, other) => one - other);
  const at = (share: number) => `${(sorted[Math.ceil(share * sorted.length) - 1] ?? 0).toFixed(1)} ms`;
  return [at(0.5), at(0.99), at(1)];
}
