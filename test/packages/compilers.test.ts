/**
 * The declarations of all published packages, in projects of every form, with the compilers of TypeScript 5.4 and of today. The long form
 * (`npm run test:packages`) also takes every version between them, and the newest.
 */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { cp, rm, symlink, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { packageNames, readManifest } from "../../deploy/packages/build.ts";
import { compileProject } from "../support/compiler.ts";
import { scratch } from "../support/service.ts";
import { CONSUMER, PRINTED } from "./consumer.ts";
import { type Directory, installPacked, nodes, tsconfig } from "./install.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const TOOLS = join(ROOT, "test/dependencies/tools/node_modules");

/** A compiler, and the types of Node that projects of its time have. */
type Compiler = { readonly version: string; readonly typescript: string; readonly nodeTypes: string };

const OLDEST = join(TOOLS, "typescript-oldest");
const OLDEST_NODE_TYPES = join(TOOLS, "node-types-oldest");
const NODE_TYPES = join(ROOT, "node_modules/@types/node");

const LONG = process.env.PACKAGES === "long";

/** The versions that the long form installs. */
const BETWEEN = ["5.5", "5.6", "5.7", "5.8", "5.9", "6.0", "latest"];

function compilers(): readonly Compiler[] {
  const short = [
    { version: "5.4", typescript: OLDEST, nodeTypes: OLDEST_NODE_TYPES },
    { version: "7.0", typescript: join(ROOT, "node_modules/typescript"), nodeTypes: NODE_TYPES },
  ];
  if (!LONG) return short;
  const directory = scratch();
  const names = BETWEEN.map((version) => `typescript-${version}@npm:typescript@${version}`);
  execFileSync("npm", ["install", "--no-audit", "--no-fund", "--prefix", directory, ...names]);
  const between = BETWEEN.map((version) => ({
    version,
    typescript: join(directory, "node_modules", `typescript-${version}`),
    nodeTypes: version < "5.6" ? OLDEST_NODE_TYPES : NODE_TYPES,
  }));
  return [...short, ...between];
}

/** The forms of projects: the settings of their compiler, the type in their manifest, and whether the newest compilers have the form. */
const FORMS = [
  { form: "ES modules", module: "nodenext", resolution: "nodenext", type: "module", isCurrent: true },
  { form: "CommonJS", module: "nodenext", resolution: "nodenext", type: "commonjs", isCurrent: true },
  { form: "a bundler", module: "esnext", resolution: "bundler", type: "module", isCurrent: true },
  {
    form: "CommonJS as before `exports`",
    module: "commonjs",
    resolution: "node10",
    type: "commonjs",
    isCurrent: false,
  },
];

/** Errors of libraries themselves: of protobuf-es and Connect before TypeScript 5.7, and of what Fastify logs with in old projects. */
const OF_CONNECT = /node_modules\/@(?:bufbuild|connectrpc)\/.*: error TS2315: Type 'Uint8Array' is not generic\.$/;
const OF_FASTIFY = /node_modules\/(?:pino|thread-stream)\//;

/** What the published packages leave to their users. The types of Node are linked for each compiler. */
const OWN_DEPENDENCIES = [
  ...["@connectrpc/connect-node", "@opentelemetry/api", "react", "@types/react", "csstype"],
  "fastify",
];

let directory: Directory;
beforeAll(async () => {
  const folders = packageNames().filter((folder) => readManifest(folder).exports !== undefined);
  directory = await installPacked([...folders, "protoc-gen-connect-http"], OWN_DEPENDENCIES);
  await directory.write(CONSUMER);
  await cp(join(ROOT, "proto/google"), join(directory.path, "proto/google"), { recursive: true });
  await directory.run("buf", ["generate"]);
});
afterAll(() => directory.remove());

/** What projects with Connect have installed: the oldest versions that the packages take, and the newest. */
describe.each(["oldest", "newest"])("with the %s peers", (age) => {
  const own = join(ROOT, "test/dependencies/peers", age, "node_modules");
  const folders = ["connect-http-routes", "connect-grpc-health", "connect-grpc-reflection", "connect-opentelemetry"];
  let project: Directory;
  beforeAll(async () => {
    const plugins = ["protoc-gen-connect-http", "protoc-gen-http-openapi"];
    const linked = ["@connectrpc/connect-node", "@opentelemetry/api", "@types/node", "undici-types"];
    project = await installPacked([...folders, ...plugins], linked, own);
    await project.write({
      ...CONSUMER,
      "package.json": '{"type":"module"}',
      "tsconfig.json": tsconfig(["server.ts", "gen"], false),
    });
    await cp(join(ROOT, "proto/google"), join(project.path, "proto/google"), { recursive: true });
  });
  afterAll(() => project.remove());

  test.each(folders)("%s has the ends of the range of each", (folder) => {
    for (const [name, range] of Object.entries(readManifest(folder).peerDependencies ?? {})) {
      const file = join(own, name, "package.json");
      if (!existsSync(file)) continue;
      const { version } = JSON.parse(readFileSync(file, "utf8")) as { readonly version: string };
      if (age === "oldest") expect(range).toBe(`^${version}`);
      else expect(range.split(".")[0]).toBe(`^${version.split(".")[0]}`);
    }
  });

  test("both plugins generate, and the program compiles and runs", async () => {
    await project.run("buf", ["generate"]);
    expect(await compileProject(project.path)).toBe("");
    for (const node of await nodes()) expect((await project.run(node, ["out/server.js"])).stdout).toBe(PRINTED);
  });
});

describe.each(compilers())("TypeScript $version", ({ version, typescript, nodeTypes }) => {
  const isOld = version < "5.7";
  const hasNode10 = version < "7";

  // An old compiler takes long. Its syntax is the same in all forms, so the short form has the first of them, and the one that it alone has.
  const forms = FORMS.filter((form) => (hasNode10 ? LONG || form === FORMS[0] || !form.isCurrent : form.isCurrent));

  test.each(forms)("compiles all packages for $form", async (form) => {
    const { path } = directory;
    await rm(join(path, "node_modules/@types/node"), { force: true });
    await symlink(nodeTypes, join(path, "node_modules/@types/node"));
    await writeFile(join(path, "package.json"), JSON.stringify({ type: form.type }));
    const compilerOptions = {
      ...{
        module: form.module,
        moduleResolution: form.resolution,
        target: "es2022",
        lib: ["es2023", "dom", "dom.iterable"],
      },
      ...{
        types: ["node"],
        strict: true,
        exactOptionalPropertyTypes: true,
        skipLibCheck: false,
        outDir: "out",
        rootDir: ".",
      },
      ...(version.startsWith("6") && { ignoreDeprecations: "6.0" }),
    };
    await writeFile(join(path, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["*.ts", "gen"] }));
    const stdout = await compileProject(path, typescript);
    const errors = stdout.split("\n").filter((line) => line !== "");
    const isOfLibrary = (line: string) =>
      (isOld && OF_CONNECT.test(line)) || ((isOld || !form.isCurrent) && OF_FASTIFY.test(line));
    expect(errors.filter((line) => !isOfLibrary(line))).toEqual([]);
    if (form.resolution === "bundler") return;
    for (const node of await nodes()) expect((await directory.run(node, ["out/server.js"])).stdout).toBe(PRINTED);
  });
});
