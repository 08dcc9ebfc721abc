// Measures how soon after the acknowledgement of a logout the verifiers in Go and in Python refuse the token. Each verifier is a separate
// process, and all follow one service on loopback, one language after the other.
//
//     npm run bench:logout [-- --verifiers 50] [--rounds 40]
//
// Each time is measured from the acknowledgement to the first `revoked` of a verifier, which checks the token every millisecond. This
// process reads the feed, too: what a verifier takes longer than this plain reader is its own delay. Other load on the machine distorts
// the figures, so the load average is printed with them.
import { loadavg } from "node:os";
import { parseArgs } from "node:util";
import { startService } from "../support/service.ts";
import { bearer, logIn } from "../support/sessions.ts";
import { LANGUAGES, startFollower } from "../support/verifier/languages.ts";

const [ISSUER, AUDIENCE] = ["https://auth.example", "https://api.example"];
const { values } = parseArgs({
  options: { verifiers: { type: "string", default: "50" }, rounds: { type: "string", default: "40" } },
});
const [verifiers, rounds] = [Number(values.verifiers), Number(values.rounds)];

const nowMs = () => performance.timeOrigin + performance.now();

/** Opens a stream of the feed without a verifier. Returns a function that waits for the arrival of the next batch with a revocation. */
async function readFeed(adminUrl: string, adminToken: string): Promise<() => Promise<number>> {
  const message = Buffer.from("{}");
  const head = Buffer.from([0, 0, 0, 0, message.length]);
  const headers = { authorization: `Bearer ${adminToken}`, "content-type": "application/connect+json" };
  const url = `${adminUrl}/auth.admin.v1.SessionAdminService/WatchRevocations`;
  const response = await fetch(url, { method: "POST", headers, body: Buffer.concat([head, message]) });
  if (response.body === null) throw new Error("no feed");
  let arrived = Promise.withResolvers<number>();
  const follow = async (body: AsyncIterable<Uint8Array>) => {
    for await (const bytes of body) if (Buffer.from(bytes).includes('"revocations"')) arrived.resolve(nowMs());
  };
  follow(response.body).catch(() => {}); // The stream fails when the service is stopped at the end of the measurement.
  return () => {
    arrived = Promise.withResolvers<number>();
    return arrived.promise;
  };
}

const service = await startService({ ISSUER, AUDIENCE });
const { adminUrl, adminToken, publicUrl } = service;
for (const { name, build } of LANGUAGES) {
  const command = await build();
  const options = { adminUrl, adminToken, issuer: ISSUER, audience: AUDIENCE, policy: "refuse" } as const;
  const followers = Array.from({ length: verifiers }, () => startFollower(command, options));
  await Promise.all(followers.map((follower) => follower.reported("ready")));
  const next = await readFeed(adminUrl, adminToken);
  const [delays, beyond]: [number[], number[]] = [[], []];
  for (let round = 0; round < rounds; round++) {
    const { accessToken } = await logIn(service);
    const before = await Promise.all(followers.map((follower) => follower.verdictOf(accessToken)));
    if (before.some((verdict) => verdict !== "accepted")) throw new Error(`before the logout: ${before}`);
    const arrival = next();
    const refusals = followers.map((follower) => follower.refusedAtMs(accessToken));
    await fetch(`${publicUrl}/v1/auth/logout`, { method: "DELETE", headers: bearer(accessToken) });
    const acknowledgedAt = nowMs();
    const [arrivedAt, ...times] = await Promise.all([arrival, ...refusals]);
    delays.push(...times.map((time) => time - acknowledgedAt));
    beyond.push(...times.map((time) => time - arrivedAt));
  }
  for (const follower of followers) follower.stop();
  const shares = (of: readonly number[]) => {
    const sorted = of.toSorted((one, other) => one - other);
    const at = (share: number) => `${(sorted[Math.ceil(share * sorted.length) - 1] ?? 0).toFixed(1)} ms`;
    return `p50 ${at(0.5)}, p99 ${at(0.99)}, max ${at(1)}`;
  };
  const load = loadavg()[0]?.toFixed(1);
  console.log(`${name}: ${verifiers} verifiers, ${rounds} logouts (load ${load})`);
  console.log(`  after the acknowledgement: ${shares(delays)}`);
  console.log(`  after a plain reader of the feed: ${shares(beyond)}`);
}
await service.kill9();
process.exit(0);
