/** Runs `session-service config`. Values that may hold a secret are never printed. */
import type { Command } from "commander";
import { type Context, EXIT } from "./context.ts";
import { style, table } from "./output/text.ts";

export function addConfigCommand(program: Command, context: Context): void {
  const config = program.command("config").description("check or show the configuration in the environment");
  config
    .command("check")
    .description("find every fault, and what looks like a mistake: misspelt variables, origins that can never work")
    .option("--strict", "fail for what looks like a mistake, too")
    .option("--json", "for programs")
    .addHelpText(
      "after",
      "\nOnly the variables are checked: `session-service doctor` looks at files, certificates and Redis, too.\n" +
        "Exit codes: 0 no fault, 1 a fault (with --strict: or a warning), 2 wrong usage.",
    )
    .action((options) => checkConfig(context, options));
  config
    .command("show")
    .description("print every variable with its value, and where it comes from; secrets are hidden")
    .option("--set", "only those that are set")
    .option("--json", "for programs")
    .addHelpText("after", "\nExit codes: 0 done, 1 the configuration has a fault, 2 wrong usage.")
    .action((options) => showConfig(context, options));
}

type Options = { readonly strict?: boolean; readonly set?: boolean; readonly json?: boolean };

async function checkConfig({ env, print, setExitCode }: Context, options: Options): Promise<void> {
  const { examineConfig, lineOf } = await import("../config/findings.ts");
  const { faults, findings, setCount } = examineConfig(env);
  const warnings = findings.map(lineOf);
  const isFault = faults.length > 0 || (options.strict === true && warnings.length > 0);
  if (isFault) setExitCode(EXIT.failed);
  const lines = [
    ...faults.map((line) => `${style("red", "fault")}    ${line}`),
    ...warnings.map((line) => `${style("yellow", "warning")}  ${line}`),
  ];
  if (options.json) print(JSON.stringify({ ok: !isFault, faults, warnings }));
  else print(lines.length > 0 ? lines.join("\n") : `no fault; variables set: ${setCount}`);
}

async function showConfig({ env, print, note, setExitCode }: Context, options: Options): Promise<void> {
  const { configVariables } = await import("../config/config.ts");
  const { examineConfig } = await import("../config/findings.ts");
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

/** Matches the names of variables whose text is a secret, including variables that may be added later. */
const SECRET = /(?:^|_)(?:PASSWORD|SECRET|TOKENS?|HEADERS|KEY)$/;

/** Matches the names of variables whose text is a URL. Its query is hidden too, because some collectors take keys there. */
const IS_URL = /^ISSUER$|_(?:URL|ENDPOINT)$/;

/** Returns the text of a variable without secrets. Any text may contain a URL with credentials, not only that of a URL variable. */
export function shownValue(name: string, text: string): string {
  return SECRET.test(name) ? `(hidden: ${text.split(",").length})` : withoutCredentials(name, text, HIDDEN);
}

const HIDDEN = { password: ":(hidden)", query: "?(hidden)" };
const LEFT_OUT = { password: "", query: "" };

/** Removes the credentials even if the URL is invalid and has its password in an unusual place. */
function withoutCredentials(name: string, text: string, { password, query }: typeof HIDDEN): string {
  if (!text.includes("://")) return text;
  const at = text.lastIndexOf("@");
  const [scheme = ""] = /^[a-z+]+:\/\//i.exec(text) ?? [];
  const user = /^([^:@,/]*):/.exec(text.slice(scheme.length))?.[1] ?? "";
  const open = at === -1 ? text : `${scheme}${user}${password}@${text.slice(at + 1)}`;
  return IS_URL.test(name) ? open.replace(/[?#].*$/s, query) : open;
}

/**
 * Describes a variable for programs, with times in ms and URLs without passwords. A secret is described only by whether it is set.
 *
 * @param value the parsed value; undefined if the variable is not set or has a fault
 */
export function variableAsJson(name: string, text: string | undefined, value: unknown): object {
  const source = text ? "environment" : "default";
  if (SECRET.test(name)) return { name, source, secret: true };
  if (value === undefined) return { name, source, value: null };
  // A variable ending in `_FILE` or `_URL` is shown as its text, not as the value that was read from it.
  const isText = name.endsWith("_FILE") || name.endsWith("_URL");
  return { name, source, value: open(name, text && isText ? text : value) };
}

function open(name: string, value: unknown): unknown {
  if (Array.isArray(value)) return value.map((each) => open(name, each));
  return typeof value === "string" ? withoutCredentials(name, value, LEFT_OUT) : value;
}

/** The values that the service determines at its start if a variable is not set. */
const DERIVED: Readonly<Record<string, string>> = {
  ADMIN_TOKENS: "(made in DATA_DIR)",
  ISSUER: "(http://127.0.0.1:PORT)",
  AUDIENCE: "(ISSUER)",
  COOKIE_PATH: "(/v1/auth, or / with a __Host- name)",
  MAX_CONNECTIONS_PER_ADDRESS: "(three quarters of MAX_CONNECTIONS)",
};

/** Formats the default of a variable for display. If the default is a duration, `value` is in ms. */
export function shownDefault(name: string, value: unknown): string {
  const derived = DERIVED[name];
  if (derived !== undefined) return derived;
  if (value === undefined || (Array.isArray(value) && value.length === 0)) return "(none)";
  if (isRate(value)) return `${value.count}/${value.windowMs / 1000}s`;
  return typeof value === "number" && isDuration(name) ? duration(value) : String(value);
}

const isRate = (value: unknown): value is { readonly count: number; readonly windowMs: number } =>
  typeof value === "object" && value !== null && "windowMs" in value;

/** Returns whether a variable is a duration with a unit. Durations of OpenTelemetry (`OTEL_…`) are plain numbers of milliseconds. */
const isDuration = (name: string) =>
  !name.startsWith("OTEL_") && /_(?:TTL|INTERVAL|TIMEOUT|DELAY|AGE|RETENTION|MAX)$/.test(name);

/** Formats a duration as variables contain it: `10s`, `5m`, `14d`. */
function duration(ms: number): string {
  for (const [unit, length] of [["d", 86_400_000] as const, ["h", 3_600_000] as const, ["m", 60_000] as const]) {
    if (ms >= length && ms % length === 0) return `${ms / length}${unit}`;
  }
  return ms % 1000 === 0 ? `${ms / 1000}s` : `${ms}ms`;
}
