/** Runs `session-service config`. Values that may hold a secret are never printed. */
import { ConfigError, configVariables, readConfig } from "../../config/config.ts";
import type { Environment } from "../../config/reader.ts";
import { configWarnings } from "../../config/warnings.ts";
import type { Context } from "../context.ts";
import { EXIT } from "../exit.ts";
import { style } from "../output/style.ts";
import { table } from "../output/table.ts";
import { shownDefault, shownValue, variableAsJson } from "./values.ts";

type Check = { readonly faults: readonly string[]; readonly warnings: readonly string[] };

export function checkConfig({ env, print, setExitCode }: Context, options: { strict?: boolean; json?: boolean }): void {
  const { faults, warnings } = check(env);
  const isFault = faults.length > 0 || (options.strict === true && warnings.length > 0);
  if (isFault) setExitCode(EXIT.failed);
  const lines = [
    ...faults.map((line) => `${style("red", "fault")}    ${line}`),
    ...warnings.map((line) => `${style("yellow", "warning")}  ${line}`),
  ];
  const set = [...configVariables().keys()].filter((name) => env[name]).length;
  if (options.json) print(JSON.stringify({ ok: !isFault, faults, warnings }));
  else print(lines.length > 0 ? lines.join("\n") : `no fault; variables set: ${set}`);
}

/** Warnings are reported together with faults: a misspelt name may be the cause of a fault. */
function check(env: Environment): Check {
  try {
    return { faults: [], warnings: configWarnings(env, readConfig(env)) };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return { faults: error.faults, warnings: configWarnings(env) };
  }
}

export function showConfig(
  { env, print, note, setExitCode }: Context,
  options: { set?: boolean; json?: boolean },
): void {
  const variables = [...configVariables(env)].filter(([name]) => !options.set || env[name]);
  const { faults } = check(env);
  if (options.json) {
    const listed = variables.map(([name, value]) => variableAsJson(name, env[name], value));
    print(JSON.stringify({ ok: faults.length === 0, faults, variables: listed }));
  } else {
    const rows = variables.map(([name, value]) => {
      const text = env[name];
      return text ? [name, shownValue(name, text), "environment"] : [name, shownDefault(name, value), "default"];
    });
    print(table([["variable", "value", "from"], ...rows]));
  }
  if (faults.length === 0) return;
  for (const fault of faults) note(`${style("red", "fault", process.stderr)}  ${fault}`);
  setExitCode(EXIT.failed);
}
