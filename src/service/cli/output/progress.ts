/** A progress bar for long work. It is drawn only on a terminal, because in a log or a pipe it would be noise. */

const WIDTH = 30;
const INTERVAL_MS = 100;

export type Progress = {
  readonly update: (done: number) => void;
  readonly end: () => void;
};

const SILENT: Progress = { update: () => {}, end: () => {} };

/** @param total the number of steps; 0 if it is not known */
export function createProgress(what: string, total: number, stream: NodeJS.WriteStream = process.stderr): Progress {
  if (!stream.isTTY) return SILENT;
  let drawnAt = Number.NEGATIVE_INFINITY;
  return {
    update(done) {
      const now = performance.now();
      if (now - drawnAt < INTERVAL_MS && done < total) return;
      drawnAt = now;
      stream.write(`\r\x1b[K${line(what, done, total)}`);
    },
    end: () => void stream.write("\r\x1b[K"),
  };
}

function line(what: string, done: number, total: number): string {
  if (total === 0) return `${what} ${done}`;
  const share = Math.min(1, done / total);
  const filled = Math.round(share * WIDTH);
  return `${what} [${"#".repeat(filled)}${".".repeat(WIDTH - filled)}] ${Math.floor(share * 100)}%`;
}
