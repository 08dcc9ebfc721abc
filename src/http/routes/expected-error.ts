/** An error that requests can cause at any rate. It captures no stack: that costs more than the rest of the response. */
export class ExpectedError extends Error {
  constructor(message: string) {
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    super(message);
    Error.stackTraceLimit = stackTraceLimit;
  }
}
