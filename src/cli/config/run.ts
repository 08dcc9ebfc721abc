/** Runs `session-service config`. Values that may hold a secret are never printed. */
import { configVariables } from "../../config/config.ts";
import { examineConfig } from "../../config/warnings.ts";
import type { Context } from "../context.ts";
import { EXIT } from "../exit.ts";
import { style } from "../output/style.ts";
import { table } from "../output/table.ts";
import { shownDefault, shownValue, variableAsJson } from "./values.ts";

export function checkConfig({ env, print, setExitCode }: Context, options: { strict?: boolean; json?: boolean }): void {
  const { faults, warnings, setCount } = examineConfig(env);
  const isFault = faults.length > 0 || (options.strict === true && warnings.length > 0);
  if (isFault) setExitCode(EXIT.failed);
  const lines = [
    ...faults.map((line) => `${style("red", "fault")}    ${line}`),
    ...warnings.map((line) => `${style("yellow", "warning")}  ${line}`),
  ];
  if (options.json) print(JSON.stringify({ ok: !isFault, faults, warnings }));
  else print(lines.length > 0 ? lines.join("\n") : `no fault; variables set: ${setCount}`);
}

export function showConfig(
  { env, print, note, setExitCode }: Context,
  options: { set?: boolean; json?: boolean },
): void {
  const variables = [...configVariables(env)].filter(([name]) => !options.set || env[name]);
  const { faults } = examineConfig(env);
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
