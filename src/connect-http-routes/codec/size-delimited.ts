/** Reads and writes messages that are preceded by their length in bytes as a varint (protobuf.dev/programming-guides/techniques). */
import { BinaryWriter } from "@bufbuild/protobuf/wire";
import { BadInput, BodyTooLarge } from "./bad-input.ts";
import { concatBytes } from "./bytes.ts";
import type { StreamSplitter } from "./json-splitter.ts";

/** Returns the bytes of a message with their length in front. */
export function sizeDelimited(message: Uint8Array): Uint8Array {
  return new BinaryWriter().bytes(message).finish();
}

/** The most bytes of a varint length. A longer one is above 2^32, which exceeds every limit. */
const MAX_SIZE_BYTES = 5;

export class SizeDelimitedSplitter implements StreamSplitter {
  readonly #limit: number;
  /** The length of the next message. While its varint is incomplete, this is the value of the bytes that have arrived. */
  #size = 0;
  #sizeBytes = 0;
  /** Whether the length is complete and the bytes of the message follow. */
  #inMessage = false;
  #parts: Uint8Array[] = [];
  #missing = 0;

  /** @param limit maximum length of one message, in bytes */
  constructor(limit: number) {
    this.#limit = limit;
  }

  get pendingBytes(): number {
    return this.#inMessage ? this.#size - this.#missing : this.#sizeBytes;
  }

  push(chunk: Uint8Array): Uint8Array[] {
    const messages: Uint8Array[] = [];
    let at = 0;
    while (at < chunk.byteLength) {
      if (this.#inMessage) {
        const part = chunk.subarray(at, at + this.#missing);
        this.#parts.push(part);
        this.#missing -= part.byteLength;
        at += part.byteLength;
      } else this.#readSize(chunk[at++] as number);
      if (this.#inMessage && this.#missing === 0) messages.push(this.#take());
    }
    return messages;
  }

  end(): Uint8Array[] {
    if (this.#sizeBytes > 0) throw new BadInput("body", undefined, "incomplete");
    return [];
  }

  #readSize(byte: number): void {
    if (this.#sizeBytes === MAX_SIZE_BYTES) throw new BadInput("body", undefined, "not size-delimited");
    this.#size += (byte & 0x7f) * 0x80 ** this.#sizeBytes++;
    if (byte > 0x7f) return;
    if (this.#size > this.#limit) throw new BodyTooLarge(this.#limit);
    this.#inMessage = true;
    this.#missing = this.#size;
  }

  #take(): Uint8Array {
    const message = concatBytes(this.#parts);
    this.#parts = [];
    [this.#size, this.#sizeBytes, this.#inMessage] = [0, 0, false];
    return message;
  }
}
