/** A PostgreSQL server with its default settings, whose programs are in a directory of the system. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { freePort } from "../../../support/free-port.ts";
import { type Program, startProgram, whileRunning } from "../../../support/processes.ts";
import { scratch } from "../../../support/service.ts";
import type { Store } from "./contender.ts";

/** PostgreSQL refuses to run as root. Debian's package makes this user. */
const USER = "postgres";
const asUser = process.getuid?.() === 0 ? ["setpriv", `--reuid=${USER}`, `--regid=${USER}`, "--clear-groups"] : [];

/** @param programs the directory with `initdb` and `postgres` */
export async function startPostgres(programs: string): Promise<Store & { readonly url: string }> {
  const [directory, port] = [scratch(), await freePort()];
  const command = (name: string, ...args: string[]): [string, ...string[]] => {
    const [first = "", ...rest] = [...asUser, join(programs, name), ...args];
    return [first, ...rest];
  };
  if (asUser.length > 0) execFileSync("chown", [USER, directory]);
  const [initdb, ...options] = command(
    "initdb",
    "-D",
    join(directory, "data"),
    "-A",
    "trust",
    "-U",
    "peer",
    "-E",
    "UTF8",
  );
  execFileSync(initdb, options, { stdio: "ignore", cwd: directory });
  let program: Program | undefined;
  /** The first process, and one for each connection and task. */
  const pids = (): readonly number[] => {
    const { pid } = program as Program;
    return [pid, ...readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").map(Number)];
  };
  const signal = (name: NodeJS.Signals) => {
    for (const pid of pids()) process.kill(pid, name);
  };
  const store = {
    url: `postgres://peer@127.0.0.1:${port}/postgres?sslmode=disable`,
    pids: async () => pids(),
    pause: () => signal("SIGSTOP"),
    resume: () => signal("SIGCONT"),
    async start() {
      const own = ["-D", join(directory, "data"), "-p", String(port), "-h", "127.0.0.1", "-k", directory];
      const [postgres, ...args] = command("postgres", ...own);
      program = startProgram(postgres, args, { cwd: directory });
      const ask = ["-h", "127.0.0.1", "-p", String(port)];
      await whileRunning(program, async () => execFileSync(join(programs, "pg_isready"), ask));
    },
    /** Stops it in an orderly way. By SIGTERM it would wait for its clients. */
    async shutDown() {
      program?.kill("SIGINT");
      await program?.exited;
    },
  };
  await store.start();
  return { ...store, stop: store.shutDown };
}
