import { errorMessage } from "../../platform/files/error-code.ts";

/** A fault that an operator can fix. Its message is complete, so it is printed without a stack. */
export class StartError extends Error {
  override readonly name = "StartError";
}

/** @param what the variable or the operation that the error is about */
export function startError(error: unknown, what?: string): StartError {
  const text = errorMessage(error);
  return new StartError(what === undefined ? text : `${what}: ${text}`, { cause: error });
}
