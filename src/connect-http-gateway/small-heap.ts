/**
 * Flags that keep Node's memory small. By default, garbage grows to several times the live objects, and compilers keep tens of megabytes.
 */

const FLAGS = [
  // Each of the two halves of the young generation has 2 MB instead of 16.
  "--max-semi-space-size=2",
  // A full collection begins when the heap is half as large again as after the last one, instead of four times as large.
  "--heap-growing-percent=50",
  // Turns off the middle one of V8's three compilers. Hot code is optimized without it, and the command takes no more CPU time.
  "--no-maglev",
];

/** The newest Node that is known to have all flags. Node does not start with a flag that it does not know. */
const NEWEST_MAJOR = 26;

/** Replaces this process by one that has the flags, with the same process id. Returns if it has them, or if it cannot be replaced. */
export function restartWithSmallHeap(): void {
  const { argv, connected, execArgv, execPath, version } = process;
  const [, major = ""] = /^v(\d+)\./.exec(version) ?? [];
  if (FLAGS.every((flag) => execArgv.includes(flag)) || Number(major) > NEWEST_MAJOR) return;
  // This process has an IPC channel to its parent, which the replacement would close.
  if (connected) return;
  try {
    // The later one of two flags counts, so those that the user has given to Node take precedence.
    process.execve?.(execPath, [execPath, ...FLAGS, ...execArgv, ...argv.slice(1)]);
  } catch {
    // `execve` does not exist on Windows, and Node's permission model refuses it. The command then runs without the flags.
  }
}
