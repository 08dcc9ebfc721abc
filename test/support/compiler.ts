/** The TypeScript compiler of this repository, as tests run it on projects that they write. */
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
const TYPESCRIPT = join(import.meta.dirname, "../../node_modules/typescript");

/** The projects of tests fit into this memory, so the compiler, which is written in Go, does not need to collect garbage. */
const ENV = { GOGC: "off", GOMEMLIMIT: "1GiB" } as const;

/**
 * Compiles a project. By default four checkers share its files, and each checks what they have in common, such as the types of Node, which
 * takes twice the CPU time.
 *
 * @param project its tsconfig.json, or the directory of that
 * @param typescript the directory of the package `typescript`. Default: that of this repository
 * @returns the errors, one a line: empty if there are none
 */
export async function compileProject(project: string, typescript = TYPESCRIPT): Promise<string> {
  // Before version 7, the compiler is written in TypeScript and has a single checker.
  const { version } = JSON.parse(readFileSync(join(typescript, "package.json"), "utf8")) as {
    readonly version: string;
  };
  const options = Number.parseInt(version, 10) < 7 ? [] : ["--checkers", "1"];
  const args = [join(typescript, "bin/tsc"), ...options, "-p", project, "--pretty", "false"];
  return run(process.execPath, args, { env: { ...process.env, ...ENV } }).then(
    ({ stdout }) => stdout,
    (error: { readonly stdout?: string }) => {
      // The compiler prints its errors to standard output. A compiler that prints none has not run.
      if (!error.stdout) throw error;
      return error.stdout;
    },
  );
}
