import { type Code, ConnectError } from "@connectrpc/connect";
import { codeToString } from "@connectrpc/connect/protocol-connect";

type HeaderFields = Readonly<Record<string, string>>;

/**
 * A ConnectError that makes `Headers` only when its metadata is read. The first `Headers` of a process loads Node's implementation of
 * fetch, with a tenth of the processor time of a start, and JSON routes need none. `instanceof ConnectError` holds, because Connect
 * recognizes its errors by their members.
 */
export class CallError extends Error implements ConnectError {
  override readonly name = "ConnectError";
  readonly isWireError = false;
  readonly rawMessage: string;
  readonly code: Code;
  readonly headers: HeaderFields;
  readonly details: ConnectError["details"];
  readonly findDetails = ConnectError.prototype.findDetails;
  override readonly cause: unknown;

  constructor(
    rawMessage: string,
    code: Code,
    headers: HeaderFields,
    details: ConnectError["details"],
    cause?: unknown,
  ) {
    super(`[${codeToString(code)}] ${rawMessage}`);
    this.rawMessage = rawMessage;
    this.code = code;
    this.headers = headers;
    this.details = details;
    this.cause = cause;
  }

  /** A copy: to change it has no effect. */
  get metadata(): Headers {
    return new Headers(this.headers);
  }
}

export function headersOf(error: ConnectError): HeaderFields {
  return error instanceof CallError ? error.headers : Object.fromEntries(error.metadata);
}
