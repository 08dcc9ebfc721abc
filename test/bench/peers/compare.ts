/**
 * Compares this service with node-oidc-provider and better-auth, each by default and by its best settings: tabs that refresh with one
 * token, a lost response, a stolen credential, a store that is away (faults.ts), how soon services refuse what a logout has ended, CPU and
 * memory (costs.ts). It prints the tables of docs/why/comparison.md. `--only gateways` compares forward auth with oauth2-proxy instead.
 *
 *     npm run bench:peers [-- --users 20 --refreshes 1000] [--only faults|costs|gateways]
 *
 * It takes a quarter of an hour. All contenders run on loopback, and are measured in turns, so other load on the machine changes the ratios
 * less than the figures. What mostly waits runs at the same time.
 */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { buildPackages } from "../../../deploy/packages/build.ts";
import { serverVersion } from "../../support/redis.ts";
import { machine, table } from "../machine.ts";
import { CONTENDERS } from "./contenders.ts";
import { COST_TITLES, costs } from "./costs.ts";
import { faults, faultTitles } from "./faults.ts";

const { values } = parseArgs({
  options: {
    users: { type: "string", default: "20" },
    refreshes: { type: "string", default: "1000" },
    only: { type: "string", default: "faults,costs" },
  },
});
const users = Number(values.users);

if (values.only === "gateways") {
  // It needs Go and nginx, which the others do not.
  const { gateways, VERSION } = await import("./gateways.ts");
  console.log(await gateways());
  console.log(machine(`oauth2-proxy ${VERSION}`, serverVersion()));
  process.exit(0);
}

const directory = import.meta.dirname;
if (!existsSync(join(directory, "node_modules"))) {
  const options = { cwd: directory, stdio: "inherit" } as const;
  execFileSync("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"], options);
}
buildPackages(["service"]);
const versionOf = (path: string): string =>
  JSON.parse(readFileSync(join(directory, path, "package.json"), "utf8")).version;
const all = await Promise.all(CONTENDERS.map(({ start }) => start()));
const print = (titles: readonly string[], rows: readonly (readonly string[])[]) =>
  console.log(
    `${table(
      ["", ...titles],
      rows.map((cells, at) => [CONTENDERS[at]?.name ?? "", ...cells]),
    )}\n`,
  );
if (values.only.includes("costs")) print(COST_TITLES, await costs(all, Number(values.refreshes)));
if (values.only.includes("faults")) print(faultTitles(users), await faults(all, users));
await Promise.all(all.map((running) => running.stop()));

const versions = [
  `node-oidc-provider ${versionOf("../../../node_modules/oidc-provider")}`,
  `better-auth ${versionOf("node_modules/better-auth")}`,
];
console.log(machine(...versions, serverVersion()));
process.exit(0);
