/** Where in a request a value stands. */
export type InputPlace = "path" | "query" | "body" | "header";

/** A value that cannot be understood. The request is at fault: 400. */
export class BadInput extends Error {
  override readonly name = "BadInput";
  readonly place: InputPlace;
  /** The field, parameter or header, as the caller named it; undefined if it is the whole. */
  readonly field: string | undefined;

  constructor(place: InputPlace, field: string | undefined, reason: string) {
    super(field === undefined ? `${place}: ${reason}` : `${place}: ${field}: ${reason}`);
    this.place = place;
    this.field = field;
  }
}
