/** Checks whether other users can read or change a file or directory that holds secrets, by the rules of ssh for a private key. */
import type { Stats } from "node:fs";
import { lstat, readdir, readFile, readlink, stat } from "node:fs/promises";
import { errorCode } from "./error-code.ts";

export type Protection = {
  /**
   * The access that only the owner may have. `read`: others may neither read nor write; the group may read but not write, because
   * orchestrators mount secrets with that mode. `write`: neither the group nor others may write.
   */
  readonly forbids: "read" | "write";
  /** The mode that the message recommends, such as 0o600. */
  readonly mode: number;
  /** Whether root may use a file of another user. It may for commands of an operator, but not for a service that runs as root. */
  readonly rootUsesAny?: boolean;
  /** Names of files by which a directory is known to be of this program alone. Default: any directory is. */
  readonly ownNames?: readonly string[];
};

const FORBIDDEN_BITS = { read: 0o027, write: 0o022 } as const;

/**
 * Returns why a path must not be used, as the end of a sentence that begins with the path; undefined if it may be used. A symbolic link is
 * followed, and both the link and its target must belong to the user of this process or to root. Always undefined on Windows, which has no
 * such permissions.
 *
 * @throws errors of the file system, ENOENT among them
 */
export async function protectionFault(path: string, protection: Protection): Promise<string | undefined> {
  const [link, target] = await Promise.all([lstat(path), stat(path)]);
  const { rootUsesAny, mode } = protection;
  // A command for a file would make a directory useless for everybody.
  if (target.isDirectory() && (mode & 0o100) === 0) return "is a directory, not a file";
  const fault =
    faultOfOwner(path, link, rootUsesAny) ??
    faultOfOwner(path, target, rootUsesAny) ??
    modeFault(path, target, protection, await mountedBy(path, link, target));
  const isOfOthers = fault !== undefined && target.isDirectory() && (await holdsOthersFiles(path, protection));
  return isOfOthers ? fault.replace(/: (?:chmod|chown) .*/s, `, and holds other files: ${CHOOSE_ANOTHER}`) : fault;
}

/** What is advised for a directory such as /var/lib, which others need as it is. */
const CHOOSE_ANOTHER = "name a directory in it";

/** Every file system that was made by mkfs has this directory. */
const OF_FILE_SYSTEM = "lost+found";

async function holdsOthersFiles(path: string, { ownNames }: Protection): Promise<boolean> {
  if (ownNames === undefined) return false;
  const names = await readdir(path).catch(() => []); // A directory that nobody but its owner can list is not shared.
  return names.some((name) => name !== OF_FILE_SYSTEM) && !names.some((name) => ownNames.includes(name));
}

/**
 * Returns whether Kubernetes has mounted a file of a Secret. Its name is then a link into `..data`, or with `subPath` it may belong to
 * root. `chmod` helps with neither.
 */
async function mountedBy(path: string, link: Stats, target: Stats): Promise<"kubernetes" | "root" | undefined> {
  if (!target.isFile()) return undefined;
  if (link.isSymbolicLink()) return /^\.\.data\//.test(await readlink(path)) ? "kubernetes" : undefined;
  return link.uid === 0 && process.geteuid?.() !== 0 ? "root" : undefined;
}

type ProtectedText =
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly fault: string; readonly isAbsent: boolean };

/**
 * Reads a file, or returns why it must not or cannot be used, as the end of a sentence that begins with its name.
 *
 * @param flag how the file is opened; default: to read
 */
export async function readProtected(path: string, protection: Protection, flag?: number): Promise<ProtectedText> {
  try {
    const fault = await protectionFault(path, protection);
    return fault === undefined
      ? { ok: true, text: await readFile(path, { encoding: "utf8", flag }) }
      : { ok: false, fault, isAbsent: false };
  } catch (error) {
    const code = errorCode(error);
    const reader = code === "EACCES" ? ` by uid ${process.geteuid?.()}` : "";
    return { ok: false, fault: `cannot be read${reader} (${code})`, isAbsent: code === "ENOENT" };
  }
}

/** Works as protectionFault, but checks the owners only. */
export async function ownerFault(path: string): Promise<string | undefined> {
  const [link, target] = await Promise.all([lstat(path), stat(path)]);
  return faultOfOwner(path, link) ?? faultOfOwner(path, target);
}

function faultOfOwner(path: string, { uid }: Stats, rootUsesAny = false): string | undefined {
  const own = process.geteuid?.();
  if (own === undefined || uid === own || uid === 0 || (own === 0 && rootUsesAny)) return undefined;
  return `belongs to another user (uid ${uid}; the service runs as ${own}): chown ${own} ${path}`;
}

const STICKY = 0o1000;

const OF_VOLUME = "`defaultMode: 0400` on the volume and `fsGroup` in the pod's securityContext";

function modeFault(
  path: string,
  { mode }: Stats,
  { forbids, mode: advised }: Protection,
  by: "kubernetes" | "root" | undefined,
): string | undefined {
  if (process.platform === "win32" || (mode & FORBIDDEN_BITS[forbids]) === 0) return undefined;
  const act = forbids === "read" ? "read or change" : "change";
  const found = `has mode ${(mode & 0o777).toString(8)}, which lets others ${act} it`;
  if ((mode & STICKY) !== 0) return `${found}: ${CHOOSE_ANOTHER}`; // Such as /tmp.
  if (by === "kubernetes") return `${found}: set ${OF_VOLUME}`;
  const remedy = `${found}: chmod ${advised.toString(8)} ${path}`;
  return by === "root" ? `${remedy}, or in Kubernetes set ${OF_VOLUME}` : remedy;
}
