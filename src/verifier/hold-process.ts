/**
 * Keeps the process running until `ready` is settled. Retries alone do not keep it running, so Node would end the process during `await
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
