/**
 * Writes into a response without the framework that writes its head, its first message and its end. Frameworks pass each message of a
 * stream through a chain of async iterables. For a message to thousands of streams, that costs several times as much as the writing.
 */
import type { Request, Response } from "./exchange.ts";

export type Output = {
  /** Writes bytes of the body. If the response has ended, nothing happens. @returns false if the client must read first (`drained`) */
  write(bytes: Uint8Array): boolean;
  /** Resolves when the client has read enough, or the response has ended. */
  drained(): Promise<void>;
};

const outputs = new WeakMap<Request, Output>();

export function keepOutput(request: Request, response: Response): void {
  outputs.set(request, outputTo(response));
}

export function outputOf(request: Request): Output | undefined {
  return outputs.get(request);
}

/** The callback of writes. It ignores a failure, because a failed write also destroys the response, and that ends the stream. */
const ignoreFailure = () => {};

function outputTo(response: Response): Output {
  const isOver = () =>
    response.writableEnded || ("stream" in response ? response.stream.destroyed : response.destroyed);
  return {
    write(bytes) {
      if (isOver()) return true;
      // TypeScript cannot unify the overloads of `write` in the two types.
      if ("stream" in response) return response.stream.write(bytes, ignoreFailure);
      return response.write(bytes, ignoreFailure);
    },
    drained: () =>
      new Promise((resolve) => {
        const settle = () => {
          response.off("drain", settle).off("close", settle);
          resolve();
        };
        response.once("drain", settle).once("close", settle);
      }),
  };
}
