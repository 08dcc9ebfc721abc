/**
 * The long form: `npm run test:faults [part of a name]`. Prints the table row by row, and exits with 1 if the service broke a promise of
 * the docs during a fault.
 */

import { ALL_FAULTS } from "./all.ts";
import { isClean, tableHead, tableRow } from "./tally.ts";

const PACE = { browsers: 10, instances: 2, beforeMs: 3_000, afterMs: 6_000 };

const wanted = process.argv[2] ?? "";
let failures = 0;
console.log(tableHead());
for (const { name, run } of ALL_FAULTS.filter(({ name }) => name.includes(wanted))) {
  const row = await run(PACE).catch((error: unknown) => `| ${name} | did not run: ${String(error)} |`);
  const clean = typeof row !== "string" && isClean(row);
  if (!clean) failures++;
  console.log(typeof row === "string" ? row : tableRow(row));
}
console.log(`\n² more in the first 100 ms after a stop.`);
console.log(
  `¹ docs/why/faults.md has what may be lost. ${failures === 0 ? "All rows hold." : `${failures} rows do not hold.`}`,
);
process.exit(failures === 0 ? 0 : 1);
