const cleanups = new Set<() => void>();

/**
 * Runs `clean` when a test file has ended, and at the exit of the process. A test runner may end the process by SIGTERM, at which Node
 * emits no `exit`, so that signal is handled as well. `clean` may run several times.
 */
export function onExit(clean: () => void): void {
  if (cleanups.size === 0) {
    process.once("exit", cleanUp);
    process.once("SIGTERM", exitOnSignal);
  }
  cleanups.add(clean);
}

/** Ends processes and removes files that tests have left. */
export function cleanUp(): void {
  for (const clean of cleanups) clean();
}

function exitOnSignal(): never {
  process.exit(143); // The exit code is 128 + SIGTERM, as shells report it.
}
