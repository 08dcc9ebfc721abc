// Computes what a load needs (instances, nodes of Redis, memory, network and money), and simulates how an incident affects the clients on
// one day.
//
//     npm run capacity                                                  the tables of docs/why/capacity.md
//     npm run capacity -- --refreshes 5000 --sessions 2000000 --verifiers 300 [--creations 20] [--endings 10]
//     npm run capacity -- --measure costs.json                          measures the costs on this machine, and checks the formulas
//     npm run capacity -- --costs costs.json …                          the tables, computed with these costs
import { readFileSync, writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { type Costs, MEASURED } from "./capacity/costs.ts";
import { compare, measure } from "./capacity/measure.ts";
import { needs } from "./capacity/needs.ts";
import { costsTable, incidentTable, needsTable, ofSessions, TABLES } from "./capacity/tables.ts";

/** How far the results of the formulas may be from the measured ones, as a fraction. */
const TOLERANCE = 0.2;

const { values } = parseArgs({
  options: {
    refreshes: { type: "string" },
    sessions: { type: "string", default: "1000000" },
    verifiers: { type: "string", default: "100" },
    creations: { type: "string" },
    endings: { type: "string" },
    costs: { type: "string" },
    measure: { type: "string" },
  },
});

const costs = values.costs === undefined ? MEASURED : (JSON.parse(readFileSync(values.costs, "utf8")) as Costs);
if (values.measure !== undefined) {
  const log = (text: string) => process.stderr.write(`${text}\n`);
  const measured = await measure(log);
  writeFileSync(
    values.measure,
    `${JSON.stringify(measured, (_, value) => (typeof value === "number" ? Math.round(value) : value), 2)}\n`,
  );
  for (const { what, predicted, measured: real } of await compare(measured, log)) {
    const off = predicted / real - 1;
    log(`${what}: ${predicted.toFixed(3)} predicted, ${real.toFixed(3)} measured (${(100 * off).toFixed(0)} %)`);
    if (Math.abs(off) > TOLERANCE) process.exitCode = 1;
  }
} else if (values.refreshes !== undefined) {
  const usual = ofSessions(Number(values.refreshes), Number(values.sessions), Number(values.verifiers));
  const demand = {
    ...usual,
    creationsPerSecond: Number(values.creations ?? usual.creationsPerSecond),
    endingsPerSecond: Number(values.endings ?? usual.endingsPerSecond),
  };
  console.log(needsTable([demand], costs));
  for (const limit of needs(demand, costs).beyond) console.log(`\nBeyond one deployment: ${limit}.`);
} else {
  console.log(
    [costsTable(costs), ...TABLES.map((demands) => needsTable(demands, costs)), incidentTable()].join("\n\n"),
  );
}
