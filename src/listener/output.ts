/**
 * Writing into a response past the framework that has begun it.
 * A framework passes every message of a stream through a chain of async iterables. Where one message goes to thousands of streams, that
 * chain costs several times as much as the writing. The framework still writes the head, the first message and the end.
 */
import type { Request, Response } from "./exchange.ts";

export type Output = {
  /** Writes bytes of the body. A response that is over ignores them. @returns false if the client has to catch up first (`drained`) */
  write(bytes: Uint8Array): boolean;
  /** Resolves when the client has caught up, or the response is over. */
  drained(): Promise<void>;
};

const outputs = new WeakMap<Request, Output>();

/** Lets `outputOf` find the response of a request. */
export function keepOutput(request: Request, response: Response): void {
  outputs.set(request, outputTo(response));
}

export function outputOf(request: Request): Output | undefined {
  return outputs.get(request);
}

/** A write that fails destroys the response, which ends the stream. */
const ignoreFailure = () => {};

function outputTo(response: Response): Output {
  const isOver = () =>
    response.writableEnded || ("stream" in response ? response.stream.destroyed : response.destroyed);
  return {
    write(bytes) {
      if (isOver()) return true;
      // TypeScript cannot unify the overloads of the two types.
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
