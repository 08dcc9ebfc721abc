/**
 * Keeps the process running until `ready` is settled. Retries alone do not, so Node would end a process in the middle of `await
 * verifier.ready`.
 */
export function holdProcess(ready: Promise<void>, signal: AbortSignal): void {
  const hold = setInterval(() => {}, 0x7fff_ffff);
  const release = () => {
    clearInterval(hold);
    signal.removeEventListener("abort", release);
  };
  ready.then(release, release);
  if (signal.aborted) release();
  else signal.addEventListener("abort", release);
}
