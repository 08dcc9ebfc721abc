/** An error that clients can cause as often as they like. It captures no stack, which would cost more than the rest of the response. */
export class ExpectedError extends Error {
  constructor(message: string) {
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    super(message);
    Error.stackTraceLimit = stackTraceLimit;
  }
}
