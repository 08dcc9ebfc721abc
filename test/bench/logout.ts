// Measures how soon after the acknowledgement of a logout, or of a change of a session, the verifiers in TypeScript, in Go and in Python refuse
// the token. Each verifier in Go and in Python is a separate process, and those in TypeScript share one. All follow one service on loopback,
// one language after the other.
//
//     npm run bench:logout [-- --verifiers 50] [--rounds 40] [--changes] [--upstream] [--beside <logouts a second>]
//
// With --upstream an identity provider ends the sessions, by a logout token for each.
//
// Each time is measured from the acknowledgement to the first refusal of a verifier, which checks the token every 5 ms. This
// process reads the feed, too: what a verifier takes longer than this plain reader is its own delay. Other load on the machine distorts
// the figures, so the load average is printed with them.
import { fork } from "node:child_process";
import { once } from "node:events";
import { loadavg } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { AccessTokenPolicy } from "../../gen/auth/admin/v1/session_admin_pb.ts";
import { createVerifier } from "../../src/verifier/index.ts";
import { sendLogout, startIssuer } from "../support/logout-token.ts";
import { startService } from "../support/service.ts";
import { admin, bearer, type LoggedIn, logIn, message, openAdmin, somebody } from "../support/sessions.ts";
import { type Follower, type FollowOptions, LANGUAGES, startFollower } from "../support/verifier/languages.ts";

type Urls = { readonly publicUrl: string; readonly adminUrl: string; readonly adminToken: string };
type Question = { readonly id: number; readonly index: number; readonly token: string; readonly isUntil: boolean };
type Decision = { readonly id: number; readonly verdict: string; readonly atMs: number };
type Verifiers = readonly Pick<Follower, "verdictOf" | "refusedAtMs" | "stop">[];
type Order = { readonly service: Urls; readonly perSecond: number } | "stop";

const [ISSUER, AUDIENCE] = ["https://auth.example", "https://api.example"];
/** How many logouts of others may be under way at once. */
const MAX_UNDER_WAY = 50;

/** The first rounds, in which processes start and code is compiled, are not counted. */
const WARM_UP_ROUNDS = 20;

const nowMs = () => performance.timeOrigin + performance.now();

if (process.argv[2] === "beside") logOutBeside();
else if (process.argv[2] === "verify") verify();
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

/** Runs in a process of its own: logs out sessions at a steady rate, or fewer where the machine cannot keep up, until a message stops it. */
function logOutBeside(): void {
  const underWay = new Set<Promise<unknown>>();
  let [isOver, count] = [false, 0];
  // If the measurement is killed, nobody sends that message.
  process.on("disconnect", () => process.exit());
  process.on("message", async (order: Order) => {
    const startedAt = performance.now();
    isOver = order === "stop";
    for (let at = 0; order !== "stop" && !isOver; at++) {
      await sleep(Math.max(0, startedAt + (at * 1000) / order.perSecond - performance.now()));
      if (underWay.size >= MAX_UNDER_WAY) await Promise.race(underWay);
      const one: Promise<unknown> = logIn(order.service)
        .then((session) => logOut(order.service, session))
        .then(
          () => count++,
          (error: unknown) => console.error("beside:", error),
        )
        .finally(() => underWay.delete(one));
      underWay.add(one);
    }
    if (order === "stop") return;
    await Promise.all(underWay);
    process.send?.(Math.round((count * 1000) / (performance.now() - startedAt)));
    process.disconnect?.();
  });
}

/** Starts the logouts of others. Returns a function that ends them, and resolves with how many a second there were. */
function startBeside({ publicUrl, adminUrl, adminToken }: Urls, perSecond: number): () => Promise<number> {
  if (perSecond === 0) return async () => 0;
  const child = fork(import.meta.filename, ["beside"]);
  child.send({ service: { publicUrl, adminUrl, adminToken }, perSecond } satisfies Order);
  return async () => {
    child.send("stop" satisfies Order);
    return (await once(child, "message"))[0] as number;
  };
}

async function logOut({ publicUrl }: Urls, { accessToken }: LoggedIn): Promise<void> {
  const response = await fetch(`${publicUrl}/v1/auth/logout`, { method: "DELETE", headers: bearer(accessToken) });
  if (!response.ok) throw new Error(`the logout responds ${response.status}`);
  await response.arrayBuffer();
}

async function change({ adminUrl, adminToken }: Urls, { sid }: LoggedIn): Promise<void> {
  const update = { sessionId: sid, claims: { role: "user" }, accessTokens: AccessTokenPolicy.REFRESH };
  message(await openAdmin({ adminUrl }).call(admin.updateSession, update, bearer(adminToken)));
}

/** Opens a stream of the feed without a verifier. Returns a function that waits for the arrival of a batch with a session. */
async function readFeed({ adminUrl, adminToken }: Urls): Promise<(sid: string) => Promise<number>> {
  const request = Buffer.from("{}");
  const head = Buffer.from([0, 0, 0, 0, request.length]);
  const headers = { authorization: `Bearer ${adminToken}`, "content-type": "application/connect+json" };
  const url = `${adminUrl}/auth.admin.v1.SessionAdminService/WatchRevocations`;
  const response = await fetch(url, { method: "POST", headers, body: Buffer.concat([head, request]) });
  if (response.body === null) throw new Error("no feed");
  let wanted = { sid: "none", ...Promise.withResolvers<number>() };
  const follow = async (body: AsyncIterable<Uint8Array>) => {
    for await (const bytes of body) if (Buffer.from(bytes).includes(wanted.sid)) wanted.resolve(nowMs());
  };
  follow(response.body).catch(() => {}); // The stream fails when the service is stopped at the end of the measurement.
  return (sid) => {
    wanted = { sid, ...Promise.withResolvers<number>() };
    return wanted.promise;
  };
}

async function measure(): Promise<void> {
  const { values } = parseArgs({
    options: {
      verifiers: { type: "string", default: "50" },
      rounds: { type: "string", default: "40" },
      changes: { type: "boolean", default: false },
      upstream: { type: "boolean", default: false },
      beside: { type: "string", default: "0" },
    },
  });
  const rounds = Number(values.rounds);
  // The load of this measurement is no reason to refuse calls.
  const limits = { OVERLOAD_MAX_LOOP_DELAY: "10s", MAX_CONNECTIONS_PER_ADDRESS: "20000" };
  const provider = await startIssuer();
  const service = await startService({ ISSUER, AUDIENCE, ...limits, ...(values.upstream && provider.env) });
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
    ["TypeScript", () => startHere(options, count)],
    ...LANGUAGES.map(({ name, build }) => [name, () => startThere(build, options, count)] as const),
  ];
  for (const [name, start] of languages) {
    const followers = await start();
    const arrivalOf = await readFeed(service);
    const [delays, beyond]: [number[], number[]] = [[], []];
    const stopBeside = startBeside(service, Number(values.beside));
    for (let round = -WARM_UP_ROUNDS; round < rounds; round++) {
      // The service may just be closing the idle connection of the previous round.
      const subject = somebody();
      const login = { subject, ...(values.upstream && { upstream: { issuer, subject } }) };
      const session = await logIn(service, login).catch(() => logIn(service, login));
      const before = await Promise.all(followers.map((follower) => follower.verdictOf(session.accessToken)));
      if (before.some((verdict) => verdict !== "accepted")) throw new Error(`before the end: ${before}`);
      const arrival = arrivalOf(session.sid);
      const refusals = followers.map((follower) => follower.refusedAtMs(session.accessToken));
      await end(session);
      const acknowledgedAt = nowMs();
      const [arrivedAt, ...times] = await Promise.all([arrival, ...refusals]);
      if (round < 0) continue;
      delays.push(...times.map((time) => time - acknowledgedAt));
      beyond.push(...times.map((time) => time - arrivedAt));
    }
    const beside = await stopBeside();
    for (const follower of followers) follower.stop();
    const load = loadavg()[0]?.toFixed(1);
    console.log(`${name}: ${values.verifiers} verifiers, ${rounds} ${what}, ${beside} logouts/s beside (load ${load})`);
    console.log(`  after the acknowledgement: ${sharesOf(delays)}`);
    console.log(`  after a plain reader of the feed: ${sharesOf(beyond)}`);
  }
  await service.kill9();
  process.exit(0);
}

function sharesOf(values: readonly number[]): string {
  const sorted = values.toSorted((one, other) => one - other);
  const at = (share: number) => `${(sorted[Math.ceil(share * sorted.length) - 1] ?? 0).toFixed(1)} ms`;
  return `p50 ${at(0.5)}, p99 ${at(0.99)}, max ${at(1)}`;
}
