/**
 * Checks whether the path of each file that SQLite has open still leads to that file. If a file was removed or replaced, the process
 * would go on writing to the old file, whose data would be lost. In the journal mode WAL, SQLite itself does not check this.
 */
import { realpathSync, statSync } from "node:fs";
import { StoreUnavailable } from "../../session/ports.ts";

/** How old a check may be, in ms, for reads and for writes that need not be on disk. A check takes 2 µs, a refresh 60 µs. */
const MAX_AGE_MS = 100;

export class FileGuard {
  readonly #path: string;
  /** Each file, with its identity when it was opened. */
  readonly #files: readonly (readonly [path: string, identity: string])[];
  #checkedAt = Number.NEGATIVE_INFINITY;

  /** @param path the path of the database. The database must be open, so that its -wal and -shm files exist */
  constructor(path: string) {
    this.#path = path;
    this.#files = filesOf(path).map((file) => [file, identityOf(file)] as const);
  }

  /** Checks the files now. @throws StoreUnavailable if one was removed or replaced */
  check(): void {
    for (const [file, identity] of this.#files) {
      if (identityOf(file) === identity) continue;
      this.#checkedAt = Number.NEGATIVE_INFINITY;
      throw new StoreUnavailable(
        `embedded store: ${file} was removed or replaced while it was in use, and nothing can be stored: ` +
          `stop the service, restore ${this.#path} from a backup, start it again`,
      );
    }
    this.#checkedAt = performance.now();
  }

  /** Works as `check`, but may use a result of the last 100 ms. */
  checkRecent(): void {
    if (performance.now() - this.#checkedAt > MAX_AGE_MS) this.check();
  }
}

function filesOf(path: string): readonly string[] {
  const real = realpathSync(path);
  return [path, `${real}-wal`, `${real}-shm`];
}

/** Returns the device and the inode of a file as a string; an empty string if there is no such file. */
function identityOf(path: string): string {
  const found = statSync(path, { throwIfNoEntry: false });
  return found === undefined ? "" : `${found.dev}:${found.ino}`;
}
