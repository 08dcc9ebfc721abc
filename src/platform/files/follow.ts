/** Follows a file that others replace or rewrite while the service runs. */
import { type FSWatcher, watch } from "node:fs";
import { readFile } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { NON_BLOCKING } from "./non-blocking.ts";

/** How often a followed file is read, in ms. Notifications of the file system only make a reading happen sooner. */
const FOLLOW_INTERVAL_MS = 1000;

/** The result of reading the file. It is `ok` whether or not the file has changed. */
export type Taken<Fault extends Error> = { readonly ok: true } | { readonly ok: false; readonly reason: Fault };

type FollowDeps<Fault extends Error> = {
  readonly path: string;
  /** Reads the file, and applies it if it has changed. It never throws. */
  readonly take: () => Promise<Taken<Fault>>;
  /** Called once per fault, when a second reading finds the fault again: a file that is only half written is not reported. */
  readonly onRefusal: (fault: Fault) => void;
  /** Called when the file is valid again after a fault that was reported. */
  readonly onRecovery?: (() => void) | undefined;
  readonly everyMs?: number | undefined;
};

/**
 * Returns whether a change in the directory of a file may be a change of the file. Other changes are ignored, because the store may be in
 * the same directory, and is written with each request. Kubernetes replaces all files of a volume at once by changing a name that begins
 * with `..`, so such names count as well.
 *
 * @param changed the name in the directory that has changed; null if the system does not report it
 */
function mayConcern(path: string, changed: string | null): boolean {
  return changed === null || changed === basename(path) || changed.startsWith("..");
}

/** Follows the file until the returned function is called. It does not keep the process running. */
export function followFile<Fault extends Error>(deps: FollowDeps<Fault>): () => void {
  const { path, take, onRefusal, onRecovery = () => {}, everyMs = FOLLOW_INTERVAL_MS } = deps;
  let lastFault = "";
  let reported = "";
  const poll = async (): Promise<void> => {
    const taken = await take();
    const message = taken.ok ? "" : taken.reason.message;
    if (message === lastFault && message !== reported) {
      if (taken.ok) onRecovery();
      else onRefusal(taken.reason);
      reported = message;
    }
    lastFault = message;
  };

  let busy: Promise<unknown> = Promise.resolve();
  let stopped = false;
  const queue = (look: () => Promise<unknown>): void => {
    busy = busy.then(() => (stopped ? undefined : look()));
  };
  const timer = setInterval(() => queue(poll), everyMs).unref();
  let watcher: FSWatcher | undefined;
  try {
    // The directory is watched, because a file is replaced by a new one. If watching fails, polling is enough.
    watcher = watch(dirname(path), (_event, changed) => {
      if (mayConcern(path, changed)) queue(take);
    })
      .on("error", () => watcher?.close())
      .unref();
  } catch {}
  return () => {
    stopped = true;
    clearInterval(timer);
    watcher?.close();
  };
}

type FollowEvents<Content, Fault extends Error> = Pick<FollowDeps<Fault>, "onRefusal" | "onRecovery"> & {
  /** Called when the content of a changed file has come into use. */
  readonly onChange: (content: Content) => void;
};

/** The content of a file. While the file is invalid or missing, the earlier content stays in use. */
export interface Followed<Content, Fault extends Error> {
  readonly current: Content;
  /**
   * Follows the file until the returned function is called. It does not keep the process running.
   *
   * @param everyMs how often the file is read without a notification of the file system
   */
  watch(events: FollowEvents<Content, Fault>, everyMs?: number): () => void;
}

type FollowedDeps<Content, Fault extends Error> = {
  readonly path: string;
  /** @param flag how the file is opened */
  readonly read: (flag?: number) => Promise<string>;
  readonly parse: (text: string) => Content;
  readonly faultOf: (error: unknown) => Fault;
};

/** Reads a file that can be followed. @throws the errors of `read` and `parse` */
export async function loadFollowed<Content, Fault extends Error>(
  deps: FollowedDeps<Content, Fault>,
): Promise<Followed<Content, Fault>> {
  const { path, read, parse, faultOf } = deps;
  let text = await read();
  // Every request reads `current`, so it is a plain property.
  const followed = {
    current: parse(text),
    watch({ onChange, onRefusal, onRecovery }: FollowEvents<Content, Fault>, everyMs?: number) {
      const take = async (): Promise<Taken<Fault>> => {
        try {
          const found = await read(NON_BLOCKING);
          if (found === text) return { ok: true };
          followed.current = parse(found);
          text = found;
        } catch (error) {
          return { ok: false, reason: faultOf(error) };
        }
        onChange(followed.current);
        return { ok: true };
      };
      return followFile({ path, take, onRefusal, onRecovery, everyMs });
    },
  };
  return followed;
}

/**
 * Reads files that belong together, such as a certificate and its key, and that can be followed. A change of the directory of the first one
 * is noticed at once.
 * @throws the errors of the file system and of `parse`
 */
export function loadFollowedTexts<Content>(
  paths: readonly [string, ...string[]],
  parse: (texts: readonly string[]) => Content,
): Promise<Followed<Content, Error>> {
  return loadFollowed<Content, Error>({
    path: paths[0],
    read: async (flag) =>
      JSON.stringify(await Promise.all(paths.map((path) => readFile(path, { encoding: "utf8", flag })))),
    parse: (texts) => parse(JSON.parse(texts)),
    faultOf: (error) => (error instanceof Error ? error : new Error(String(error))),
  });
}
