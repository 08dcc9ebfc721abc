/**
 * Parses `multipart/form-data` (RFC 7578, with the names of HTML's "multipart/form-data encoding algorithm"). `Response.formData` would
 * do that in all runtimes, but each in its own way: some accept a body that ends early, some lose the types of files.
 */
import { BadInput } from "./bad-input.ts";
import { utf8TextOf } from "./body-reader.ts";
import { toUtf8 } from "./bytes.ts";

interface Part {
  readonly name: string;
  /** The media type of a file; undefined if the part is a text. */
  readonly fileType: string | undefined;
  /** A view of the body. */
  readonly data: Uint8Array;
}

/** The greatest number of parts. Each is an object, however short. */
const MAX_PARTS = 1_000;
const MAX_HEAD_BYTES = 8 * 1024;

const DASHES = toUtf8("--");
const LINE_BREAK = toUtf8("\r\n");
const END_OF_HEAD = toUtf8("\r\n\r\n");

/** @throws BadInput if the body is malformed, ends early or has too many parts */
export function parseMultipart(body: Uint8Array, contentType: string): Part[] {
  const [, quoted, token = ""] = /;\s*boundary=(?:"([^"]+)"|([^\s;"]+))/i.exec(contentType) ?? [];
  const boundary = quoted ?? token;
  const delimiter = toUtf8(`\r\n--${boundary}`);
  const parts: Part[] = [];
  if (boundary === "") throw malformed();
  // The line break belongs to the delimiter, but there is none at the start of the body.
  const isFirst = startsWith(body, delimiter.subarray(2), 0);
  let at = isFirst ? delimiter.length - 2 : after(body, delimiter, 0);
  while (!startsWith(body, DASHES, at)) {
    while (body[at] === 0x20 || body[at] === 0x09) at++;
    if (!startsWith(body, LINE_BREAK, at)) throw malformed();
    if (parts.length === MAX_PARTS) throw new BadInput("body", undefined, `more than ${MAX_PARTS} parts`);
    const start = after(body, END_OF_HEAD, at);
    if (start - at > MAX_HEAD_BYTES) throw malformed();
    const head = readHead(utf8TextOf(body.subarray(at + 2, start - 4)));
    at = after(body, delimiter, start);
    parts.push({ ...head, data: body.subarray(start, at - delimiter.length) });
  }
  return parts;
}

const malformed = () => new BadInput("body", undefined, "not multipart/form-data");

function startsWith(body: Uint8Array, prefix: Uint8Array, at: number): boolean {
  for (let index = 0; index < prefix.length; index++) if (body[at + index] !== prefix[index]) return false;
  return true;
}

/** Returns the position after the next occurrence of a sequence. @throws BadInput if there is none */
function after(body: Uint8Array, sequence: Uint8Array, from: number): number {
  const [first = 0] = sequence;
  for (let at = body.indexOf(first, from); at !== -1; at = body.indexOf(first, at + 1))
    if (startsWith(body, sequence, at)) return at + sequence.length;
  throw malformed();
}

/** Reads the headers of a part. @throws BadInput */
function readHead(text: string): Omit<Part, "data"> {
  const headers = new Map<string, string>();
  for (const line of text.split("\r\n")) {
    const [, name = "", value = ""] = /^([^\s:]+):[ \t]*(.*)$/s.exec(line) ?? [];
    headers.set(name.toLowerCase(), value.trim());
  }
  const parameters = parametersOf(headers.get("content-disposition") ?? "");
  const name = parameters.get("name");
  const encoding = headers.get("content-transfer-encoding") ?? "binary";
  if (name === undefined || !/^(?:7bit|8bit|binary)$/i.test(encoding)) throw malformed();
  const isFile = parameters.has("filename");
  return { name, fileType: isFile ? (headers.get("content-type") ?? "application/octet-stream") : undefined };
}

/** Returns the parameters of `form-data; name="a"; filename="b"`. Browsers escape quotes and line breaks as `%22`, `%0D` and `%0A`. */
function parametersOf(disposition: string): ReadonlyMap<string, string> {
  const [type = ""] = /^form-data(?=\s*;)/i.exec(disposition) ?? [];
  const found = new Map<string, string>();
  if (type === "") return found;
  const rest = disposition.slice(type.length);
  for (const [, name = "", quoted, token = ""] of rest.matchAll(/\s*;\s*([^\s=;"]+)=(?:"([^"]*)"|([^\s;"]*))/gy)) {
    const value = quoted ?? token;
    found.set(name.toLowerCase(), value.replace(/%(?:22|0D|0A)/gi, decodeURIComponent));
  }
  return found;
}
