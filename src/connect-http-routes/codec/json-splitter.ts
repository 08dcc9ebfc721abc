/** Splits a stream of bytes into JSON texts, before any of them is parsed. */
import { BadInput, BodyTooLarge } from "./bad-input.ts";
import { concatBytes } from "./bytes.ts";
import { BACKSLASH, CLOSE_BRACE, CLOSE_BRACKET, COMMA, OPEN_BRACE, OPEN_BRACKET, QUOTE } from "./json-scan.ts";

/** Receives bytes and returns the texts or messages that are complete. */
export interface StreamSplitter {
  /** The number of bytes kept of a message that is not complete. */
  readonly pendingBytes: number;
  /** Adds bytes. @throws BadInput, BodyTooLarge if one message is longer than the limit */
  push(chunk: Uint8Array): Uint8Array[];
  /** Ends the input. @throws BadInput if it ends within a message */
  end(): Uint8Array[];
}

/** Collects the bytes of one text, which may arrive in many chunks. */
class Pending {
  readonly #limit: number;
  #parts: Uint8Array[] = [];
  #length = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get length(): number {
    return this.#length;
  }

  add(part: Uint8Array): void {
    this.#length += part.byteLength;
    if (this.#length > this.#limit) throw new BodyTooLarge(this.#limit);
    if (part.byteLength > 0) this.#parts.push(part);
  }

  take(): Uint8Array {
    const whole = concatBytes(this.#parts);
    this.#parts = [];
    this.#length = 0;
    return whole;
  }
}

const LINE_FEED = 0x0a;

/** Splits one text per line (ndjson.org). Blank lines are skipped. */
export class LineSplitter implements StreamSplitter {
  readonly #line: Pending;

  /** @param limit maximum length of one line, in bytes */
  constructor(limit: number) {
    this.#line = new Pending(limit);
  }

  get pendingBytes(): number {
    return this.#line.length;
  }

  push(chunk: Uint8Array): Uint8Array[] {
    const lines: Uint8Array[] = [];
    let start = 0;
    for (let end = chunk.indexOf(LINE_FEED); end !== -1; end = chunk.indexOf(LINE_FEED, start)) {
      this.#line.add(chunk.subarray(start, end));
      start = end + 1;
      lines.push(this.#line.take());
    }
    this.#line.add(chunk.subarray(start));
    return lines.filter(isNotBlank);
  }

  end(): Uint8Array[] {
    return [this.#line.take()].filter(isNotBlank);
  }
}

function isNotBlank(line: Uint8Array): boolean {
  return line.some((byte) => !isSpace(byte));
}

function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

/** Splits the elements of one array. If the input does not start with a bracket, it splits texts that follow one another. */
export class ValueSplitter implements StreamSplitter {
  readonly #value: Pending;
  #place: "start" | "first element" | "element" | "separator" | "texts" | "after" = "start";
  #inValue = false;
  #depth = 0;
  #inString = false;
  #escaped = false;

  /** @param limit maximum length of one text, in bytes */
  constructor(limit: number) {
    this.#value = new Pending(limit);
  }

  get pendingBytes(): number {
    return this.#value.length;
  }

  push(chunk: Uint8Array): Uint8Array[] {
    const values: Uint8Array[] = [];
    let start = 0;
    for (let at = 0; at < chunk.byteLength; at++) {
      const byte = chunk[at] as number;
      if (!this.#inValue) {
        if (!this.#startsValue(byte)) continue;
        this.#inValue = true;
        start = at;
      }
      const end = this.#endOfValue(byte, at);
      if (end === undefined) continue;
      this.#value.add(chunk.subarray(start, end));
      values.push(this.#value.take());
      this.#inValue = false;
      if (this.#place !== "texts") this.#place = "separator";
      // Only the byte after a number or a word shows that it has ended. That byte is not part of the value, so the loop reads it again.
      if (end === at) at--;
    }
    if (this.#inValue) this.#value.add(chunk.subarray(start));
    return values;
  }

  end(): Uint8Array[] {
    const inArray = this.#place !== "start" && this.#place !== "texts" && this.#place !== "after";
    if (inArray || this.#depth > 0 || this.#inString) throw new BadInput("body", undefined, "incomplete");
    return this.#inValue ? [this.#value.take()] : [];
  }

  /** Takes a byte between two values: white space, a bracket, a comma, or the first byte of a value. @returns whether a value starts */
  #startsValue(byte: number): boolean {
    if (isSpace(byte)) return false;
    if (this.#place === "start") {
      this.#place = byte === OPEN_BRACKET ? "first element" : "texts";
      if (this.#place === "first element") return false;
    }
    const closes = byte === CLOSE_BRACKET && (this.#place === "first element" || this.#place === "separator");
    if (closes) this.#place = "after";
    else if (byte === COMMA && this.#place === "separator") this.#place = "element";
    else if (this.#place === "separator" || this.#place === "after" || byte === COMMA || byte === CLOSE_BRACKET)
      throw new BadInput("body", undefined, "not JSON");
    else return true;
    return false;
  }

  /** Returns the position after the last byte of the value, if the value ends here. */
  #endOfValue(byte: number, at: number): number | undefined {
    if (this.#inString) {
      if (this.#escaped) this.#escaped = false;
      else if (byte === BACKSLASH) this.#escaped = true;
      else if (byte === QUOTE) this.#inString = false;
      return undefined;
    }
    if (byte === QUOTE) this.#inString = true;
    else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) this.#depth++;
    else if (this.#depth > 0) {
      if ((byte === CLOSE_BRACE || byte === CLOSE_BRACKET) && --this.#depth === 0) return at + 1;
    } else if (isSpace(byte) || byte === COMMA || byte === CLOSE_BRACKET) return at;
    return undefined;
  }
}
