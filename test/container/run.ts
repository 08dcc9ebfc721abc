/** Runs an image as a container runtime does: its process is number 1, its root is read-only, and only /data is not. */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { chown, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { onExit } from "../support/on-exit.ts";
import { scratch } from "../support/service.ts";
import type { Image } from "./image.ts";

const running = new Set<ChildProcess>();
onExit(() => {
  for (const child of running) child.kill("SIGKILL");
});

type Finished = { readonly code: number | null; readonly stdout: string; readonly stderr: string };
export type Container = {
  /** The process id, on this machine, of the container's process 1. */
  readonly pid: number;
  readonly exited: Promise<Finished>;
  stdout(): string;
  stderr(): string;
  /** Runs a command in the container, as the container's user, like `docker exec`. */
  exec(command: readonly string[]): Promise<Finished>;
};

/** A script that runs a command in the container, with the arguments root, data, user and command. Every container has /dev and /proc. */
const ENTER = `set -eu
root=$1 data=$2 user=$3; shift 3
/bin/mount --bind "$root" "$root"
/bin/mount --bind "$data" "$root/data"
/bin/mount -t proc proc "$root/proc"
/bin/mount --rbind /dev "$root/dev"
/bin/mount -o remount,bind,ro "$root"
exec /usr/sbin/chroot --userspec="$user" --groups= "$root" "$@"`;

/** Makes a directory for /data. Its owner is the one that the image declares, as with volumes of container runtimes. */
export async function makeVolume(image: Image): Promise<string> {
  const path = join(scratch(), "volume");
  const [uid = 0, gid = 0] = image.config.user.split(":").map(Number);
  await mkdir(path);
  await chown(path, uid, gid);
  return path;
}

export async function runContainer(
  { root, config }: Image,
  data: string,
  env: Readonly<Record<string, string>>,
  args: readonly string[] = [],
): Promise<Container> {
  for (const name of ["proc", "dev"]) await mkdir(join(root, name), { recursive: true });
  const variables = { ...config.env, ...env };
  const isolation = ["--pid", "--mount", "--propagation", "private", "--fork", "--kill-child"];
  const command = [...config.entrypoint, ...args];
  const child = spawn(
    "/usr/bin/unshare",
    [...isolation, "/bin/sh", "-c", ENTER, "sh", root, data, config.user, ...command],
    { env: variables, stdio: ["ignore", "pipe", "pipe"] },
  );
  running.add(child);
  const text = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const) {
    child[name].setEncoding("utf8").on("data", (chunk: string) => {
      text[name] += chunk;
    });
  }
  const exited = new Promise<Finished>((resolve) => {
    child.once("close", (code) => {
      running.delete(child);
      resolve({ code, ...text });
    });
  });
  const outer = child.pid ?? 0;
  const pid = () => Number(readFileSync(`/proc/${outer}/task/${outer}/children`, "utf8"));
  return {
    get pid() {
      return pid();
    },
    exited,
    stdout: () => text.stdout,
    stderr: () => text.stderr,
    exec: (inside) => exec(pid(), config.user, variables, inside),
  };
}

function exec(
  pid: number,
  user: string,
  env: Readonly<Record<string, string>>,
  command: readonly string[],
): Promise<Finished> {
  const [uid = "", gid = ""] = user.split(":");
  const place = ["--target", String(pid), "--mount", "--pid", "--root", "--wd", "--setuid", uid, "--setgid", gid];
  return new Promise((resolve) => {
    execFile("/usr/bin/nsenter", [...place, "--", ...command], { env }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : ((error.code as number | undefined) ?? null), stdout, stderr });
    });
  });
}
