/** The verifier was closed before it had read keys and revocations. */
export class VerifierClosedError extends Error {
  override readonly name = "VerifierClosedError";

  constructor() {
    super("the verifier was closed before keys and revocations were known");
  }
}

/** Settles as `known` does. @throws VerifierClosedError if `signal` is aborted before `known` settles */
export function unlessClosed(known: Promise<unknown>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal.addEventListener("abort", () => reject(new VerifierClosedError()), { once: true });
    known.then(() => resolve(), reject);
  });
}

/** Keeps the process running until `ready` is settled. Otherwise Node would end it during `await verifier.ready`. */
export function holdProcess(ready: Promise<void>): void {
  const hold = setInterval(() => {}, 0x7fff_ffff);
  const release = () => clearInterval(hold);
  ready.then(release, release);
}
