/** The page examples/react-query/README.md: its files are generated from, compiled and run, with both generators. */
import { execFile } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { rolldown } from "rolldown";
import { beforeAll, expect, test } from "vitest";
import { describeDirectory } from "../protoc-gen-http-openapi/describe.ts";
import { BUF } from "../support/buf.ts";
import { compileProject } from "../support/compiler.ts";
import { scratch } from "../support/service.ts";

const run = promisify(execFile);
const TOOLS = resolve("test/dependencies/tools/node_modules");
const directory = scratch();

/** The packages of the project. The rest of what they import is beside them. */
const PACKAGES: readonly (readonly [from: string, names: readonly string[]])[] = [
  [TOOLS, ["@faker-js", "@tanstack", "msw"]],
  [resolve("node_modules"), ["react", "react-dom", "@types"]],
];

const write = (path: string, text: string) => {
  mkdirSync(dirname(join(directory, path)), { recursive: true });
  writeFileSync(join(directory, path), text);
};

beforeAll(async () => {
  const page = readFileSync("examples/react-query/README.md", "utf8");
  for (const [, path = "", text = ""] of page.matchAll(/^```\w+\n\/\/ (\S+)\n(.*?)^```/gms)) write(path, text);
  mkdirSync(join(directory, "node_modules"));
  for (const [from, names] of PACKAGES)
    for (const name of names) symlinkSync(join(from, name), join(directory, "node_modules", name));
  const { version } = JSON.parse(readFileSync(join(TOOLS, "@tanstack/react-query/package.json"), "utf8"));
  write("package.json", JSON.stringify({ type: "module", dependencies: { "@tanstack/react-query": version } }));
  cpSync("examples/library/proto", join(directory, "proto"), { recursive: true });
  cpSync("proto/google", join(directory, "proto/google"), { recursive: true });
  const plugin = JSON.stringify([process.execPath, resolve("src/protoc-gen-http-openapi/main.ts")]);
  const entry = `  - local: ${plugin}\n    out: gen\n    strategy: all\n`;
  write("buf.gen.yaml", `version: v2\ninputs:\n  - directory: proto\nplugins:\n${entry}`);
  await run(BUF, ["generate"], { cwd: directory });
});

/** Compiles a folder of the project. @returns the errors */
async function compile(folder: string): Promise<string> {
  const compilerOptions = {
    ...{ strict: true, noEmit: true, skipLibCheck: true, target: "es2024", module: "esnext", jsx: "react-jsx" },
    ...{ moduleResolution: "bundler", types: ["node"], lib: ["es2024", "dom", "dom.iterable"] },
  };
  write("tsconfig.json", JSON.stringify({ compilerOptions, include: [folder] }));
  return compileProject(directory);
}

/** The part of each generator that the page does not have: how a test prepares the query that the component then has. */
const GENERATORS = {
  orval: {
    args: ["orval/dist/bin/orval.mjs"],
    options: `import { getLibraryServiceListBooksQueryOptions } from "./library";
      const options = getLibraryServiceListBooksQueryOptions("1", { pageSize: 20 });`,
  },
  "hey-api": {
    args: ["@hey-api/openapi-ts/bin/run.js", "--silent", "--no-log-file"],
    options: `import { libraryServiceListBooksOptions } from "./client/@tanstack/react-query.gen";
      const options = libraryServiceListBooksOptions({ path: { shelf: "1" }, query: { pageSize: 20 } });`,
  },
};

test.each(["orval", "hey-api"] as const)("hooks and mocks by %s compile, and run", async (name) => {
  const {
    args: [program = "", ...args],
    options,
  } = GENERATORS[name];
  await run(process.execPath, [join(TOOLS, program), ...args], { cwd: directory });
  write(
    `src/${name}/program.tsx`,
    `import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
     import { renderToStaticMarkup } from "react-dom/server";
     import { mocks } from "./mocks";
     import { Shelf } from "./shelf";
     ${options}
     mocks.listen();
     const client = new QueryClient();
     await client.fetchQuery(options);
     console.log(renderToStaticMarkup(<QueryClientProvider client={client}><Shelf shelf="1" /></QueryClientProvider>));
     mocks.close();
     client.clear();`,
  );
  expect(await compile(`src/${name}`)).toBe("");
  const bundle = join(directory, `${name}.mjs`);
  const input = join(directory, `src/${name}/program.tsx`);
  await (await rolldown({ input, external: (id) => !/^[./]/.test(id), logLevel: "silent" })).write({ file: bundle });
  const { stdout } = await run(process.execPath, [bundle], { cwd: directory });
  expect(stdout.trim()).toBe("<ul><li>Dune</li></ul>");
});

test("mocks by orval compile for every kind of field", async () => {
  write("every/openapi.json", JSON.stringify(describeDirectory("test/connect-http-routes/proto")));
  const output = { target: "every/client.ts", mode: "split", client: "react-query", mock: true };
  write("every.config.js", `export default ${JSON.stringify({ every: { input: "every/openapi.json", output } })}`);
  const args = [join(TOOLS, "orval/dist/bin/orval.mjs"), "--config", "every.config.js"];
  await run(process.execPath, args, { cwd: directory });
  expect(await compile("every")).toBe("");
});
