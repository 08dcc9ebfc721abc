import { ExpectedError } from "../routes/expected-error.ts";

/** The part of a request that holds a value. */
export type InputPlace = "path" | "query" | "body" | "header";

/** A value that cannot be decoded: a client error, 400. */
export class BadInput extends ExpectedError {
  override readonly name = "BadInput";
  readonly place: InputPlace;
  /** The field, parameter or header as the client named it; undefined if the whole part is invalid. */
  readonly field: string | undefined;

  constructor(place: InputPlace, field: string | undefined, reason: string) {
    super(field === undefined ? `${place}: ${reason}` : `${place}: ${field}: ${reason}`);
    this.place = place;
    this.field = field;
  }
}

/** The body, or one message of a streamed body, is longer than the limit (413). */
export class BodyTooLarge extends ExpectedError {
  override readonly name = "BodyTooLarge";
  readonly limitBytes: number;

  constructor(limitBytes: number) {
    super(`the body is larger than ${limitBytes} bytes`);
    this.limitBytes = limitBytes;
  }
}
