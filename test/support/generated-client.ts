/** Clients that public generators make from an OpenAPI document, and programs that use them. */
import { execFile } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { rolldown } from "rolldown";
import { expect } from "vitest";
import { compileProject } from "./compiler.ts";

const run = promisify(execFile);
const TOOLS = resolve("test/dependencies/tools/node_modules");
/** The packages that programs import. */
const IMPORTED = { "openapi-fetch": join(TOOLS, "openapi-fetch") };

/** Each function runs a generator, which writes a client to `to`: as a module, or as a folder of modules. */
export const GENERATORS = {
  "openapi-ts": (input: string, to: string) =>
    run(process.execPath, [tool("@hey-api/openapi-ts/bin/run.js"), "-i", input, "-o", to, "--silent", "--no-log-file"]),
  orval: (input: string, to: string, baseUrl: string) => {
    const config = `${to}.config.mjs`;
    const output = { target: `${to}.ts`, client: "fetch", baseUrl };
    writeFileSync(config, `export default ${JSON.stringify({ api: { input, output } })}`);
    return run(process.execPath, [tool("orval/dist/bin/orval.mjs"), "--config", config]);
  },
  /** Writes types alone, which openapi-fetch uses. */
  "openapi-typescript": (input: string, to: string) =>
    run(process.execPath, [tool("openapi-typescript/bin/cli.js"), input, "-o", `${to}.d.ts`]),
};

function tool(path: string): string {
  const file = join(TOOLS, path);
  if (!existsSync(file)) throw new Error(`${file} is not installed: run sh test/setup.sh`);
  return file;
}

const TSCONFIG = {
  compilerOptions: {
    ...{ strict: true, noEmit: true, target: "es2024", module: "esnext", moduleResolution: "bundler", types: [] },
    lib: ["es2024", "dom", "dom.iterable"],
    paths: Object.fromEntries(Object.entries(IMPORTED).map(([name, path]) => [name, [path]])),
  },
};

/**
 * Compiles and runs a program in a directory that has the generated clients. @returns what it prints, which is JSON
 */
export async function runProgram(directory: string, text: string, env: Record<string, string>): Promise<unknown> {
  const program = join(directory, "program.ts");
  writeFileSync(program, text);
  writeFileSync(join(directory, "tsconfig.json"), JSON.stringify(TSCONFIG));
  expect(await compileProject(directory)).toBe("");
  const bundle = join(directory, "program.mjs");
  await (await rolldown({ input: program, resolve: { alias: IMPORTED } })).write({ file: bundle });
  return JSON.parse((await run(process.execPath, [bundle], { env })).stdout);
}
