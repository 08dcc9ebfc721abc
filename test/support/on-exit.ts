/** Runs `clean` when the process ends, also if a test runner ends it with SIGTERM, for which Node fires no `exit`. */
export function onExit(clean: () => void): void {
  process.once("exit", clean);
  if (!process.listeners("SIGTERM").includes(exitOnSignal)) process.once("SIGTERM", exitOnSignal);
}

function exitOnSignal(): never {
  process.exit(143); // The exit code is 128 + SIGTERM, as shells report it.
}
