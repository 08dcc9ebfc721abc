/**
 * Builds the image of deploy/container, as a root directory and a configuration.
 *
 * The long form builds it as an operator does, by Debian's buildah on a base image made by debootstrap. The short form runs the last
 * command of the build on this machine, with the same files.
 */
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { chown, cp, mkdir, rename, rm, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { addNode, debootstrap } from "../support/debian.ts";
import { onExit } from "../support/on-exit.ts";
import { scratch } from "../support/service.ts";

const run = promisify(execFile);
const ROOT = resolve(import.meta.dirname, "../..");
const DOCKERFILE = join(ROOT, "deploy/container/Dockerfile");
const OUTPUT = { maxBuffer: 256 * 1024 * 1024 };

type ImageConfig = {
  readonly user: string;
  readonly env: Readonly<Record<string, string>>;
  readonly entrypoint: readonly string[];
  readonly healthcheck: readonly string[];
};
export type Image = {
  readonly root: string;
  readonly config: ImageConfig;
  /** The root directory of the base image. Undefined in the short form, which uses this machine as the base. */
  readonly baseRoot?: string;
};

/** Returns the values of an instruction, stage by stage. A line that ends with a backslash goes on in the next one. */
const instructions = (name: string): string[][] =>
  readFileSync(DOCKERFILE, "utf8")
    .replaceAll("\\\n", "")
    .split(/^FROM /m)
    .slice(1)
    .map((stage) => [...stage.matchAll(new RegExp(`^${name} (.*)$`, "gm"))].map(([, value = ""]) => value));

/** The stages that make an image: the one that builds it, and the one that describes it, which is the last of the service. */
const STAGES = { service: { build: 0, final: -1 }, gateway: { build: 1, final: 2 } } as const;
type Stages = (typeof STAGES)[keyof typeof STAGES];

/** Returns the value of an instruction of the stage that describes an image. */
const instruction = ({ final }: Stages, name: string) => instructions(name).at(final)?.at(0) ?? "";

const envOf = (pairs: readonly string[]) =>
  Object.fromEntries(pairs.map((pair) => [pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1)]));

/** Copies what a builder gets of this tree: what .dockerignore leaves. */
async function copyContext(context: string): Promise<void> {
  const lines = readFileSync(join(ROOT, ".dockerignore"), "utf8").split("\n");
  const [all, ...exceptions] = lines.filter((line) => line !== "" && !line.startsWith("#"));
  if (all !== "*" || !exceptions.every((line) => /^![\w./-]+$/.test(line))) {
    throw new Error("this test reads a .dockerignore that excludes everything (*) but some paths (!path)");
  }
  for (const exception of exceptions) {
    const path = exception.slice(1);
    await cp(join(ROOT, path), join(context, path), { recursive: true });
  }
}

/** A script that runs a command in a directory where the installed packages are, with the arguments directory, packages and command. */
const WITH_PACKAGES = `set -eu
/bin/mkdir "$1/node_modules"
/bin/mount --bind "$2" "$1/node_modules"
cd "$1"
eval "$3"`;

/** Runs the last command of the stage that builds, on the context alone. Those before it install what this machine has. */
async function layOut(stages: Stages): Promise<Image> {
  const directory = scratch();
  const [context, image] = [join(directory, "context"), join(directory, "image")];
  await copyContext(context);
  const command =
    instructions("RUN")
      [stages.build]?.at(-1)
      ?.replaceAll(
        /(?<=\s)\/(?:image(?:-gateway)?|data)(?=[\s/;]|$)/g,
        (path) => `${directory}/${path.split("-")[0]?.slice(1)}`,
      ) ?? "";
  const args = ["--mount", "--propagation", "private", "/bin/sh", "-c", WITH_PACKAGES, "sh"];
  await run("/usr/bin/unshare", [...args, context, join(ROOT, "node_modules"), command], OUTPUT);
  // The command of the service makes the directory that a later instruction copies.
  if (stages === STAGES.service) await rename(join(directory, "data"), join(image, "data"));
  else await mkdir(join(image, "data"));
  await chown(join(image, "data"), 65532, 65532);
  const json = (name: string) => JSON.parse(/\[.*\]/.exec(instruction(stages, name))?.[0] ?? "[]") as string[];
  return {
    root: image,
    config: {
      user: instruction(stages, "USER"),
      env: envOf(instruction(stages, "ENV").split(" ")),
      entrypoint: json("ENTRYPOINT"),
      healthcheck: json("HEALTHCHECK"),
    },
  };
}

/** Makes the image of the gateway, in the short form. */
export const makeGatewayImage = (): Promise<Image> => layOut(STAGES.gateway);

async function build(): Promise<Image> {
  const directory = scratch();
  const places = ["--storage-driver", "vfs", "--root", join(directory, "storage"), "--runroot", join(directory, "run")];
  const env = { ...process.env, TMPDIR: directory };
  const buildah = async (...args: string[]) =>
    (await run("buildah", [...places, ...args], { ...OUTPUT, cwd: ROOT, env })).stdout.trim();
  onExit(() => void rm(directory, { recursive: true, force: true }));

  const base = await buildah("from", "scratch");
  // The base image is Debian with npm, like the official image `node:…-slim`.
  const baseRoot = await buildah("mount", base);
  await debootstrap(baseRoot);
  await addNode(baseRoot, process.execPath);
  await buildah("commit", "--quiet", base, "localhost/base");
  // npm in the container uses this machine's certificate authorities and cache, because a mirror of the registry may have a certificate of
  // its own authority.
  await writeFile(join(directory, "npmrc"), "cafile=/run/authorities.pem\n");
  const { stdout: cache } = await run("npm", ["config", "get", "cache"]);
  await mkdir(cache.trim(), { recursive: true });
  const volumes = [
    "/etc/ssl/certs/ca-certificates.crt:/run/authorities.pem:ro",
    `${join(directory, "npmrc")}:/root/.npmrc:ro`,
    `${cache.trim()}:/root/.npm`,
  ].flatMap((volume) => ["--volume", volume]);
  const options = ["--isolation", "chroot", "--format", "docker", "--build-arg", "BASE=localhost/base", ...volumes];
  await buildah("bud", ...options, "--tag", "localhost/session-service", "--file", DOCKERFILE, ".");
  const { Docker } = JSON.parse(await buildah("inspect", "--type", "image", "localhost/session-service"));
  const config = Docker.config as {
    User: string;
    Env: string[];
    Entrypoint: string[];
    Healthcheck: { Test: string[] };
  };
  return {
    root: await buildah("mount", await buildah("from", "--pull-never", "localhost/session-service")),
    baseRoot: await buildah("mount", base),
    config: {
      user: config.User,
      env: envOf(config.Env),
      entrypoint: config.Entrypoint,
      healthcheck: config.Healthcheck.Test.slice(1),
    },
  };
}

export const makeImage = (): Promise<Image> => (process.env.CONTAINER === "long" ? build() : layOut(STAGES.service));
