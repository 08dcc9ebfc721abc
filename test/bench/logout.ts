// How long after the acknowledgement of a logout the verifiers in Go and in Python refuse the token: each is a process of its own, and all
// follow one service on loopback, one language after the other.
//
//     npm run bench:logout [-- --verifiers 50] [--rounds 40]
//
// A time counts from the acknowledgement to the first `revoked` that a verifier has returned over its pipe; until then it is called again
// and again. Beside load the figures say little: the load average is printed with them.
import { loadavg } from "node:os";
import { parseArgs } from "node:util";
import { startService } from "../support/service.ts";
import { bearer, logIn } from "../support/sessions.ts";
import { type Follower, LANGUAGES, startFollower } from "../support/verifier/languages.ts";

const [ISSUER, AUDIENCE] = ["https://auth.example", "https://api.example"];
const { values } = parseArgs({
  options: { verifiers: { type: "string", default: "50" }, rounds: { type: "string", default: "40" } },
});
const [verifiers, rounds] = [Number(values.verifiers), Number(values.rounds)];

/** Resolves with the time at which the verifier has first refused the token. */
async function refusedAt(follower: Follower, token: string): Promise<number> {
  while ((await follower.verdictOf(token)) !== "revoked") {}
  return performance.now();
}

const service = await startService({ ISSUER, AUDIENCE });
const { adminUrl, adminToken, publicUrl } = service;
for (const { name, build } of LANGUAGES) {
  const command = await build();
  const options = { adminUrl, adminToken, issuer: ISSUER, audience: AUDIENCE, policy: "refuse" } as const;
  const followers = Array.from({ length: verifiers }, () => startFollower(command, options));
  await Promise.all(followers.map((follower) => follower.reported("ready")));
  const delays: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const { accessToken } = await logIn(service);
    const before = await Promise.all(followers.map((follower) => follower.verdictOf(accessToken)));
    if (before.some((verdict) => verdict !== "accepted")) throw new Error(`before the logout: ${before}`);
    await fetch(`${publicUrl}/v1/auth/logout`, { method: "DELETE", headers: bearer(accessToken) });
    const acknowledgedAt = performance.now();
    const times = await Promise.all(followers.map((follower) => refusedAt(follower, accessToken)));
    delays.push(...times.map((time) => time - acknowledgedAt));
  }
  for (const follower of followers) follower.stop();
  const sorted = delays.toSorted((one, other) => one - other);
  const at = (share: number) => `${(sorted[Math.ceil(share * sorted.length) - 1] ?? 0).toFixed(1)} ms`;
  const load = loadavg()[0]?.toFixed(1);
  console.log(
    `${name}: ${verifiers} verifiers, ${rounds} logouts: p50 ${at(0.5)}, p99 ${at(0.99)}, max ${at(1)} (load ${load})`,
  );
}
await service.kill9();
process.exit(0);
