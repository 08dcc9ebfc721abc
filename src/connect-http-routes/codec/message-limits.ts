/** Limits the memory of a parsed message: an element of two bytes may become an object of a hundred bytes. */
import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { BadInput } from "./bad-input.ts";

export interface MessageLimits {
  /** The greatest number of values in all objects and arrays of a message together. */
  readonly maxElements: number;
  /** The greatest nesting of objects and arrays. */
  readonly maxDepth: number;
}

/** The default limits. protobuf has the same limit of depth. */
export const DEFAULT_MESSAGE_LIMITS: MessageLimits = { maxElements: 100_000, maxDepth: 100 };

/** @throws BadInput if the form has too many fields */
export function checkForm(text: string, { maxElements }: MessageLimits): void {
  let fields = text.length > maxElements ? 1 : 0;
  for (let at = fields === 0 ? -1 : text.indexOf("&"); at !== -1; at = text.indexOf("&", at + 1)) {
    if (++fields > maxElements) throw tooManyElements(maxElements);
  }
}

/** Checks the binary form of a message before it is decoded. @throws BadInput; any other error if the bytes are not such a message */
export function checkBinary(type: DescMessage, bytes: Uint8Array, limits: MessageLimits): void {
  if (bytes.byteLength > limits.maxElements) new BinaryCheck(bytes, limits).message(type, bytes.byteLength, 0);
}

class BinaryCheck {
  readonly #reader: BinaryReader;
  readonly #limits: MessageLimits;
  #elements = 0;

  constructor(bytes: Uint8Array, limits: MessageLimits) {
    this.#reader = new BinaryReader(bytes);
    this.#limits = limits;
  }

  /** Reads a message up to a position. A message that is encoded as a group is read up to its end tag. */
  message(type: DescMessage, end: number, depth: number): void {
    if (depth > this.#limits.maxDepth) throw tooDeep();
    const reader = this.#reader;
    while (reader.pos < end) {
      const [number, wireType] = reader.tag();
      if (wireType === WireType.EndGroup) return;
      this.#count(1);
      this.#value(
        type.fields.find((field) => field.number === number),
        number,
        wireType,
        depth,
      );
    }
  }

  #value(field: DescField | undefined, number: number, wireType: WireType, depth: number): void {
    const reader = this.#reader;
    if (wireType === WireType.StartGroup && field?.message !== undefined) {
      this.message(field.message, reader.len, depth + 1);
    } else if (wireType !== WireType.LengthDelimited || field === undefined) {
      reader.skip(wireType, number);
    } else {
      const end = reader.uint32() + reader.pos;
      if (field.fieldKind === "map") this.#mapEntry(field.message, end, depth);
      else if (field.message !== undefined) this.message(field.message, end, depth + 1);
      // A number in a packed list takes at least one byte, so the list counts as that many elements as it has bytes.
      else if (isPackable(field)) this.#count(end - reader.pos);
      reader.pos = end;
    }
  }

  /** Checks a map entry: its value is field 2. */
  #mapEntry(value: DescMessage | undefined, end: number, depth: number): void {
    const reader = this.#reader;
    while (value !== undefined && reader.pos < end) {
      const [number, wireType] = reader.tag();
      this.#count(1);
      if (number === 2 && wireType === WireType.LengthDelimited)
        this.message(value, reader.uint32() + reader.pos, depth + 1);
      else reader.skip(wireType, number);
    }
  }

  #count(elements: number): void {
    this.#elements += elements;
    if (this.#elements > this.#limits.maxElements) throw tooManyElements(this.#limits.maxElements);
  }
}

/** Whether a list may arrive packed. Parsers accept packed and unpacked lists of numbers, whichever is declared. */
function isPackable(field: DescField): boolean {
  if (field.fieldKind !== "list" || field.listKind === "message") return false;
  return field.scalar !== ScalarType.STRING && field.scalar !== ScalarType.BYTES;
}

export function tooDeep(): BadInput {
  return new BadInput("body", undefined, "nested too deeply");
}

export function tooManyElements(maxElements: number): BadInput {
  return new BadInput("body", undefined, `more than ${maxElements} elements`);
}
