/** Runs `clean` when the process ends, also when a test runner ends it by SIGTERM, which fires no `exit` by itself. */
export function onExit(clean: () => void): void {
  process.once("exit", clean);
  if (!process.listeners("SIGTERM").includes(exitOnSignal)) process.once("SIGTERM", exitOnSignal);
}

function exitOnSignal(): never {
  process.exit(143); // 128 + SIGTERM, as a shell reports it
}
