/** A "machine" with only a small Debian, git, Node and npm: a separate root directory, which root enters by chroot. */
import { execFile } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { chown, copyFile, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { addNode, copyDebian, debootstrap, ownProgram } from "../support/debian.ts";
import { type Program, startProgram } from "../support/processes.ts";
import { scratch } from "../support/service.ts";

const run = promisify(execFile);
const TREE = resolve(import.meta.dirname, "../..");
/** The Debian packages on the machine. Node needs libstdc++. */
const PACKAGES = ["git", "libstdc++6"];

export type User = { readonly name: string; readonly id: number; readonly home: string };
export const ROOT: User = { name: "root", id: 0, home: "/root" };
export const ORDINARY: User = { name: "an ordinary user", id: 1000, home: "/home/user" };

export type Machine = {
  readonly root: string;
  /** Clones the last commit of this repository into a new directory of the user. @returns the directory, as a path inside the machine */
  clone(user: User): Promise<string>;
  /** Starts a command in a directory of the machine, as a user. All processes that the command has started end with it. */
  start(user: User, directory: string, command: string, env?: Readonly<Record<string, string>>): Program;
  /** Removes the files of the machine. They take gigabytes, so removing them at the exit of the process would take too long. */
  remove(): Promise<void>;
};

/**
 * A script that runs a command on the machine, with the arguments root, user, directory and command. The shell stays as process 1, so that
 * it and all other processes end when `unshare` ends. A process that has changed its user would not end with its parent (prctl(2),
 * PR_SET_PDEATHSIG).
 */
const ENTER = `set -eu
/bin/mount --bind "$1" "$1"
/bin/mount -t proc proc "$1/proc"
/bin/mount --rbind /dev "$1/dev"
/usr/sbin/chroot --userspec="$2:$2" --groups= "$1" /bin/sh -c 'cd "$1" && eval "$2"' sh "$3" "$4"`;
const ISOLATION = ["--mount", "--pid", "--fork", "--kill-child", "--propagation", "private"];

/**
 * @param archive whether to install Debian from its archive, as an operator does, instead of copying this machine's packages
 * @param node the path of the Node to install
 */
export async function makeMachine(archive: boolean, node: string): Promise<Machine> {
  const root = join(scratch(), "root");
  if (archive) await debootstrap(root, PACKAGES);
  else await copyDebian(root, PACKAGES);
  await addNode(root, node);
  const home = join(root, ORDINARY.home);
  await mkdir(home, { recursive: true });
  await chown(home, ORDINARY.id, ORDINARY.id);
  const network = await joinNetwork(root);
  // This machine's npm cache, from which the bare machine takes packages; undefined if the bare machine must download everything.
  const cache = archive ? undefined : join(await npmConfig("cache"), "_cacache");
  return {
    root,
    async clone(user) {
      const directory = join(user.home, "service");
      await run("git", ["clone", "--quiet", "--depth", "1", `file://${TREE}`, join(root, directory)]);
      const own = [join(root, directory)];
      if (cache !== undefined && existsSync(cache)) {
        own.push(join(root, user.home, ".npm"));
        const copy = join(root, user.home, ".npm/_cacache");
        await mkdir(copy, { recursive: true });
        // Not its directory `tmp`, whose files come and go while npm runs elsewhere on this machine.
        await run("cp", ["-R", join(cache, "content-v2"), join(cache, "index-v5"), copy]);
      }
      await run("chown", ["-R", `${user.id}:${user.id}`, ...own]);
      return directory;
    },
    remove: () => rm(root, { recursive: true, force: true }),
    start(user, directory, command, env = {}) {
      const args = [...ISOLATION, "/bin/sh", "-c", ENTER, "sh", root, String(user.id), directory, command];
      const PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
      return startProgram("/usr/bin/unshare", args, { env: { ...network, HOME: user.home, PATH, ...env } });
    },
  };
}

/** Debian and Docker give `localhost` both addresses, and resolvers prefer the second. */
const LOCALHOST = "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n";

/** Gives the bare machine the settings with which this machine reaches package registries. @returns variables for npm */
async function joinNetwork(root: string): Promise<Readonly<Record<string, string>>> {
  await copyFile("/etc/resolv.conf", join(root, "etc/resolv.conf"));
  await writeFile(join(root, "etc/hosts"), LOCALHOST + (await readFile("/etc/hosts", "utf8")));
  const [registry = "", authorities = "null"] = await Promise.all(["registry", "cafile"].map(npmConfig));
  const variables = { npm_config_registry: registry };
  if (authorities === "null") return variables;
  await copyFile(authorities, join(root, "run/authorities.pem"));
  return { ...variables, npm_config_cafile: "/run/authorities.pem" };
}

/** Returns a setting of this machine's own npm, even if another npm runs the tests. */
async function npmConfig(name: string): Promise<string> {
  const env = { PATH: process.env.PATH, HOME: process.env.HOME };
  return (await run(ownProgram("node"), [ownProgram("npm"), "config", "get", name], { cwd: "/", env })).stdout.trim();
}

/** Returns the path of a Node older than `major`: that of this machine if it is old enough, else the oldest one that the tests install. */
export async function nodeOlderThan(major: number): Promise<string> {
  const own = ownProgram("node");
  if (Number.parseInt((await run(own, ["-p", "process.versions.node"])).stdout, 10) < major) return own;
  const modules = join(TREE, "test/dependencies/oldest-node/node_modules");
  const name = readdirSync(modules).find((directory) => directory.startsWith("node-"));
  return join(modules, name ?? "", "bin/node");
}
