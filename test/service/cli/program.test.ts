/** What all commands have in common: help, version, wrong usage, output. */
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { commandLinePage } from "../../../deploy/generate/command-line.ts";
import { PROGRAM } from "../../support/program.ts";
import { command } from "./command.ts";

test("docs/reference/command-line.md has the help of every command (npm run generate)", () => {
  expect(readFileSync("docs/reference/command-line.md", "utf8")).toBe(commandLinePage());
});

test("the version is that of the package", async () => {
  const { version } = JSON.parse(readFileSync("package.json", "utf8"));
  for (const option of ["--version", "-V"])
    expect(await command([option])).toEqual({ code: 0, out: `${version}\n`, err: "" });
});

test.each([
  [["--help"], "Usage: session-service "],
  [["help", "doctor"], "Usage: session-service doctor "],
  [["sessions", "help", "list"], "Usage: session-service sessions list "],
])("help is what a command was called for: %j", async (args, beginning) => {
  const { code, out, err } = await command(args);
  expect({ code, err }).toEqual({ code: 0, err: "" });
  expect(out.startsWith(beginning)).toBe(true);
});

test.each([
  [["sesions"], "unknown command 'sesions'\n(Did you mean sessions?)"],
  [["doctor", "--jsno"], "(Did you mean --json?)"],
  [["sessions"], "Usage: session-service sessions"],
  [["serve", "now"], "too many arguments for 'serve'"],
  [["backup"], "missing required argument 'directory'"],
])("wrong usage is explained on standard error: %j", async (args, fault) => {
  const { code, out, err } = await command(args);
  expect({ code, out }).toEqual({ code: 2, out: "" });
  expect(err).toContain(fault);
});

test("a reader that has read enough ends a command quietly", async () => {
  const child = spawn(process.execPath, [PROGRAM, "config", "show"], { env: {}, stdio: ["ignore", "pipe", "pipe"] });
  child.stdout.destroy();
  let complaints = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    complaints += text;
  });
  const code = await new Promise((resolve) => child.once("close", resolve));
  expect([code, complaints]).toEqual([0, ""]);
});

describe("colours", () => {
  const bold = "\u001b[1m";
  test("are for terminals, or where they are asked for, and NO_COLOR wins", async () => {
    const shown = async (env: Record<string, string>) =>
      (await command(["config", "show", "--set"], { env: { PORT: "1", ...env } })).out;
    expect(await shown({})).not.toContain(bold);
    expect(await shown({ FORCE_COLOR: "1" })).toContain(bold);
    expect(await shown({ NO_COLOR: "1" })).not.toContain(bold);
  });
});

describe("config", () => {
  test("check finds every fault and what looks misspelt, and prints no value", async () => {
    const env = { PORT: "secret-1", ADMIN_TOKENS: "secret-2", ACCESS_TOKEN_TLL: "secret-3" };
    const { code, out } = await command(["config", "check"], { env });
    expect([code, out]).toEqual([
      1,
      [
        "fault    PORT is not a whole number",
        "fault    ADMIN_TOKENS has a token shorter than 32 characters",
        "warning  ACCESS_TOKEN_TLL is not a variable of this service: is ACCESS_TOKEN_TTL meant? (correct it, or remove it from the environment)\n",
      ].join("\n"),
    ]);
    const json = await command(["config", "check", "--json"], { env });
    expect(JSON.parse(json.out)).toMatchObject({ ok: false, faults: [expect.any(String), expect.any(String)] });
  });

  test("check fails for a warning only when it is strict", async () => {
    const env = { PROT: "1" };
    expect((await command(["config", "check"], { env })).code).toBe(0);
    expect((await command(["config", "check", "--strict"], { env })).code).toBe(1);
    expect(await command(["config", "check"], { env: { PORT: "1" } })).toEqual({
      code: 0,
      out: "no fault; variables set: 1\n",
      err: "",
    });
  });

  test("show prints values as they are written, and hides secrets", async () => {
    const env = {
      REDIS_URL: "redis+sentinel://user:s3cret@a:1,b:2/main",
      REDIS_SENTINEL_PASSWORD: "s3cret",
      ADMIN_TOKENS: `${"s3cret-".repeat(6)},${"s3cret-".repeat(7)}`,
    };
    const { code, out, err } = await command(["config", "show"], { env });
    expect([code, err, out.includes("s3cret")]).toEqual([0, "", false]);
    expect(out).toMatch(/^REDIS_URL +redis\+sentinel:\/\/user:\(hidden\)@a:1,b:2\/main +environment$/m);
    expect(out).toMatch(/^ADMIN_TOKENS +\(hidden: 2\) +environment$/m);
    expect(out).toMatch(/^ACCESS_TOKEN_TTL +5m +default$/m);
    expect(out).toMatch(/^RATE_LIMIT_REFRESH +300\/30s +default$/m);
  });

  test("show gives programs the values themselves, and of secrets only whether they are set", async () => {
    const secret = "s3cret-".repeat(6);
    const env = {
      ACCESS_TOKEN_TTL: "2m",
      ALLOWED_ORIGINS: "https://a.example, https://b.example",
      RATE_LIMIT_CREATE: "7/1m",
      RATE_LIMIT_FAILURES: "off",
      DEVICE_BINDING: "OFF",
      REDIS_URL: `redis://user:${secret}@a:1`,
      ADMIN_TOKENS: secret,
      PORT: "many",
    };
    const { code, out } = await command(["config", "show", "--json"], { env });
    expect([code, out.includes(secret)]).toEqual([1, false]);
    const { ok, faults, variables } = JSON.parse(out) as {
      ok: boolean;
      faults: string[];
      variables: { name: string }[];
    };
    expect([ok, faults]).toEqual([false, ["PORT is not a whole number"]]);
    const of = (name: string) => variables.find((variable) => variable.name === name);
    const set = (name: string, value: unknown) => expect(of(name)).toEqual({ name, source: "environment", value });
    const unset = (name: string, value: unknown) => expect(of(name)).toEqual({ name, source: "default", value });
    set("ACCESS_TOKEN_TTL", 120_000);
    set("ALLOWED_ORIGINS", ["https://a.example", "https://b.example"]);
    set("RATE_LIMIT_CREATE", { count: 7, windowMs: 60_000 });
    set("RATE_LIMIT_FAILURES", null);
    set("DEVICE_BINDING", "off");
    set("REDIS_URL", "redis://user@a:1");
    set("PORT", null);
    expect(of("ADMIN_TOKENS")).toEqual({ name: "ADMIN_TOKENS", source: "environment", secret: true });
    expect(of("REDIS_SENTINEL_PASSWORD")).toEqual({ name: "REDIS_SENTINEL_PASSWORD", source: "default", secret: true });
    unset("SESSION_IDLE_TTL", 14 * 86_400_000);
    unset("COOKIE_SECURE", true);
    unset("ISSUER", null);
    // These defaults depend on other variables: reflection is off when the store is Redis.
    unset("REFLECTION", false);
    const file = await command(["config", "show", "--json", "--set"], { env: { TLS_CERT_FILE: "package.json" } });
    expect(JSON.parse(file.out).variables).toEqual([
      { name: "TLS_CERT_FILE", source: "environment", value: "package.json" },
    ]);
  });

  test.each([
    [
      "OTEL_EXPORTER_OTLP_ENDPOINT",
      "https://user:s3cret@collector.example/v1",
      "https://user:(hidden)@collector.example/v1",
    ],
    ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://c.example/v1?api-key=s3cret", "https://c.example/v1?(hidden)"],
    ["OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "HTTPS://s3cret@c.example/v1", "HTTPS://:(hidden)@c.example/v1"],
    ["ISSUER", "https://user:s3cret@auth.example", "https://user:(hidden)@auth.example"],
    ["ISSUER", "https://auth.example/?key=s3cret", "https://auth.example/?(hidden)"],
    ["AUDIENCE", "https://a.example, https://user:s3cret@b.example", "https://:(hidden)@b.example"],
    ["ALLOWED_ORIGINS", "https://user:s3cret@app.example", "https://user:(hidden)@app.example"],
    ["AUDIENCE", "https://a.example/#api", "https://a.example/#api"],
  ])("show hides the credentials in the URL of %s", async (name, value, shown) => {
    const { out } = await command(["config", "show", "--set"], { env: { [name]: value } });
    expect(out.split("\n")[1]?.split(/ +/)).toEqual([name, shown, "environment"]);
    const json = await command(["config", "show", "--set", "--json"], { env: { [name]: value } });
    expect(out + json.out + json.err).not.toContain("s3cret");
  });

  test("every default is shown as docs/reference/configuration.md has it", async () => {
    const page = readFileSync("docs/reference/configuration.md", "utf8");
    const { out } = await command(["config", "show"]);
    const shown = out.split("\n").map((line) => line.split(/ {2,}/) as [string, string]);
    const differing = shown.flatMap(([name, value]) => {
      const stated = new RegExp(`^\\| \`${name}\` \\| \`([^\`]+)\` \\|`, "m").exec(page)?.[1];
      const isSame = stated === undefined || stated === value || value.startsWith("(");
      return isSame || name === "KEYS_FILE" ? [] : [{ name, value }]; // The docs show the default of KEYS_FILE as a path relative to DATA_DIR.
    });
    // A rate per `60s` in the output equals a rate per minute in the docs.
    expect(differing.filter(({ value }) => !/^\d+\/60s$/.test(value))).toEqual([]);
  });
});
