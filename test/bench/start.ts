/** How long from `node src/main.ts` to its ready line, on the embedded store: `npm run bench:start`. */
import { startService } from "../support/service.ts";

const STARTS = 11;

/** @returns ms */
async function timed(env: Record<string, string>): Promise<{ took: number; dataDir: string }> {
  const start = performance.now();
  const service = await startService(env);
  const took = performance.now() - start;
  await service.stop();
  return { took, dataDir: service.dataDir };
}

const { took: first, dataDir } = await timed({});
const later: number[] = [];
while (later.length < STARTS) later.push((await timed({ DATA_DIR: dataDir })).took);
later.sort((a, b) => a - b);
const median = later[Math.floor(STARTS / 2)] ?? Number.NaN;
console.log(
  `first start ${first.toFixed(0)} ms (makes keys and token); later ones ${median.toFixed(0)} ms (median of ${STARTS})`,
);
