/**
 * `npm run soak [minutes] [seed]` tests for a long time that no legitimate user is logged out, and that every thief of a token is detected.
 * Each round has a separate Redis. If a round fails, its seed is printed, with which the round can be repeated.
 */
import { round } from "./round.ts";

const [minutes = "10", seed = `${Date.now() % 1_000_000}`] = process.argv.slice(2);
const end = Date.now() + Number(minutes) * 60_000;
let total = 0;
for (let next = Number(seed); Date.now() < end; next++) {
  console.log(`seed ${next}`);
  const report = await round({ seed: next, sessions: 200, refreshes: 20_000, crashes: 10 });
  total += report.refreshes;
  console.log(JSON.stringify(report));
}
console.log(`${total} refreshes, no wrong logout, no unseen theft`);
