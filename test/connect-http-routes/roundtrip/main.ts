// Sends random messages through the routes of all services that Google publishes, and compares what arrives: npm run roundtrip [-- --seeds
// 10 --share 1 --seed 1]
import { parseArgs } from "node:util";
import { allDirectories, loadGoogleProtos } from "./google-protos.ts";
import { roundTrip } from "./round-trip.ts";

const { values } = parseArgs({
  options: {
    seeds: { type: "string", default: "10" },
    seed: { type: "string", default: "1" },
    share: { type: "string", default: "1" },
  },
});
const registry = loadGoogleProtos(allDirectories());
let wrong = 0;
for (let seed = Number(values.seed); seed < Number(values.seed) + Number(values.seeds); seed++) {
  const start = performance.now();
  const report = await roundTrip(registry, seed, Number(values.share));
  wrong += report.wrong.length;
  const trips = Object.entries(report.trips).map(([form, count]) => `${count} ${form}`);
  const seconds = ((performance.now() - start) / 1000).toFixed(1);
  console.log(
    `seed ${seed}: ${report.services} services, ${report.routes} routes, ${trips.join(", ")}: ${report.wrong.length} wrong, ${seconds} s`,
  );
  for (const line of report.wrong.slice(0, 20)) console.error(line);
}
if (wrong > 0) process.exitCode = 1;
