// Measures how soon after the acknowledgement of a logout, or of a change of a session, the verifiers in Go and in Python refuse the token.
// Each verifier is a separate process, and all follow one service on loopback, one language after the other.
//
//     npm run bench:logout [-- --verifiers 50] [--rounds 40] [--changes] [--beside <logouts a second>]
//
// Each time is measured from the acknowledgement to the first refusal of a verifier, which checks the token every 5 ms. This
// process reads the feed, too: what a verifier takes longer than this plain reader is its own delay. Other load on the machine distorts
// the figures, so the load average is printed with them.
import { loadavg } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { AccessTokenPolicy } from "../../gen/auth/admin/v1/session_admin_pb.ts";
import { startService } from "../support/service.ts";
import { admin, bearer, type LoggedIn, logIn, message, openAdmin } from "../support/sessions.ts";
import { LANGUAGES, startFollower } from "../support/verifier/languages.ts";

const [ISSUER, AUDIENCE] = ["https://auth.example", "https://api.example"];
const { values } = parseArgs({
  options: {
    verifiers: { type: "string", default: "50" },
    rounds: { type: "string", default: "40" },
    changes: { type: "boolean", default: false },
    beside: { type: "string", default: "0" },
  },
});
const [verifiers, rounds, besidePerSecond] = [values.verifiers, values.rounds, values.beside].map(Number) as [
  ...[number, number, number],
];

const nowMs = () => performance.timeOrigin + performance.now();

/** Opens a stream of the feed without a verifier. Returns a function that waits for the arrival of a batch with a session. */
async function readFeed(adminUrl: string, adminToken: string): Promise<(sid: string) => Promise<number>> {
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

const service = await startService({ ISSUER, AUDIENCE });
const { adminUrl, adminToken, publicUrl } = service;

async function logOut({ accessToken }: LoggedIn): Promise<void> {
  const response = await fetch(`${publicUrl}/v1/auth/logout`, { method: "DELETE", headers: bearer(accessToken) });
  if (!response.ok) throw new Error(`the logout responds ${response.status}`);
  await response.arrayBuffer();
}

const caller = openAdmin(service);
async function change({ sid }: LoggedIn): Promise<void> {
  const update = { sessionId: sid, claims: { role: "user" }, accessTokens: AccessTokenPolicy.REFRESH };
  message(await caller.call(admin.updateSession, update, bearer(adminToken)));
}
const end = values.changes ? change : logOut;

/** Logs out sessions of others at a steady rate. Returns a function that ends this, and resolves with how many a second there were. */
function logOutBeside(): () => Promise<number> {
  const startedAt = performance.now();
  const others: Promise<void>[] = [];
  let isOver = false;
  const run = async () => {
    for (let at = 0; besidePerSecond > 0 && !isOver; at++) {
      await sleep(Math.max(0, startedAt + (at * 1000) / besidePerSecond - performance.now()));
      others.push(logIn(service).then(logOut));
    }
  };
  const running = run();
  return async () => {
    const perSecond = Math.round((others.length * 1000) / (performance.now() - startedAt));
    isOver = true;
    await running;
    await Promise.all(others);
    return perSecond;
  };
}

for (const { name, build } of LANGUAGES) {
  const command = await build();
  const options = { adminUrl, adminToken, issuer: ISSUER, audience: AUDIENCE, policy: "refuse" } as const;
  const followers = Array.from({ length: verifiers }, () => startFollower(command, options));
  await Promise.all(followers.map((follower) => follower.reported("ready")));
  const arrivalOf = await readFeed(adminUrl, adminToken);
  const [delays, beyond]: [number[], number[]] = [[], []];
  const stop = logOutBeside();
  for (let round = 0; round < rounds; round++) {
    const session = await logIn(service);
    const before = await Promise.all(followers.map((follower) => follower.verdictOf(session.accessToken)));
    if (before.some((verdict) => verdict !== "accepted")) throw new Error(`before the end: ${before}`);
    const arrival = arrivalOf(session.sid);
    const refusals = followers.map((follower) => follower.refusedAtMs(session.accessToken));
    await end(session);
    const acknowledgedAt = nowMs();
    const [arrivedAt, ...times] = await Promise.all([arrival, ...refusals]);
    delays.push(...times.map((time) => time - acknowledgedAt));
    beyond.push(...times.map((time) => time - arrivedAt));
  }
  const besides = await stop();
  for (const follower of followers) follower.stop();
  const shares = (of: readonly number[]) => {
    const sorted = of.toSorted((one, other) => one - other);
    const at = (share: number) => `${(sorted[Math.ceil(share * sorted.length) - 1] ?? 0).toFixed(1)} ms`;
    return `p50 ${at(0.5)}, p99 ${at(0.99)}, max ${at(1)}`;
  };
  const load = loadavg()[0]?.toFixed(1);
  const what = values.changes ? "changes" : "logouts";
  console.log(`${name}: ${verifiers} verifiers, ${rounds} ${what} beside ${besides} logouts a second (load ${load})`);
  console.log(`  after the acknowledgement: ${shares(delays)}`);
  console.log(`  after a plain reader of the feed: ${shares(beyond)}`);
}
await service.kill9();
process.exit(0);
