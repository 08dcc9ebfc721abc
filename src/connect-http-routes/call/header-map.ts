/** The headers of a request as Node has parsed them. */
type ParsedHeaders = Readonly<Record<string, string | readonly string[] | undefined>>;

const NO_HEADERS: ParsedHeaders = {};

/** `inspect.custom` of node:util, which other runtimes lack. */
const INSPECT = Symbol.for("nodejs.util.inspect.custom");

/** `field-name` of RFC 9110 section 5.1. */
const NAME_CHARACTERS = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
// Characters that fetch forbids in a value: NUL, CR, LF, and code points above 255.
const INVALID_VALUE = /[\0\r\n]|[^\0-\xff]/;
const WHITESPACE = "\t\r\n ";

/**
 * A lazy implementation of fetch's Headers. It reads Node's parsed headers in place until it is changed or iterated, because a real
 * `Headers` per request and response costs more than the rest of a small request. Changed headers are a flat list of lines, as they are
 * sent: a response has about ten, and searching so few is faster than a map.
 */
export class HeaderMap implements Headers {
  readonly #source: ParsedHeaders;
  /** The names and values, alternating. Values of the same name follow each other. Undefined while the source is read in place. */
  #lines: string[] | undefined;
  /** Whether a name other than `set-cookie` has several values, which are sent as one. */
  #isRepeated = false;

  constructor(source?: ParsedHeaders) {
    this.#source = source ?? NO_HEADERS;
    if (source === undefined) this.#lines = [];
  }

  get(name: string): string | null {
    const key = keyOf(name);
    if (this.#lines === undefined) {
      const value = this.#source[key];
      // For a name such as "constructor" the value is an inherited function, which is no header.
      return typeof value === "string" ? value : typeof value === "object" ? value.join(", ") : null;
    }
    const at = indexOf(this.#lines, key);
    if (at < 0) return null;
    const end = at + lengthOf(this.#lines, at);
    return end === at + 2 ? (this.#lines[at + 1] as string) : joined(this.#lines, at, end);
  }

  /** Whether there are no headers. A map that reads a source in place never counts as empty: only that of a response is asked. */
  get isEmpty(): boolean {
    return this.#lines?.length === 0;
  }

  /** Fills an empty map. @param lines names and values, alternating */
  fill(lines: readonly string[]): void {
    this.#lines = lines.slice();
  }

  has(name: string): boolean {
    return this.get(name) !== null;
  }

  getSetCookie(): string[] {
    const lines = this.#lines ?? this.#copied();
    const values: string[] = [];
    for (let i = indexOf(lines, "set-cookie"); i >= 0 && lines[i] === "set-cookie"; i += 2)
      values.push(lines[i + 1] as string);
    return values;
  }

  set(name: string, value: string): void {
    const key = keyOf(name);
    const lines = this.#lines ?? this.#copied();
    const text = checked(value);
    const at = indexOf(lines, key);
    if (at < 0) lines.push(key, text);
    else lines.splice(at, lengthOf(lines, at), key, text);
  }

  append(name: string, value: string): void {
    const key = keyOf(name);
    const lines = this.#lines ?? this.#copied();
    const text = checked(value);
    const at = indexOf(lines, key);
    if (at < 0) lines.push(key, text);
    else {
      lines.splice(at + lengthOf(lines, at), 0, key, text);
      this.#isRepeated ||= key !== "set-cookie";
    }
  }

  delete(name: string): void {
    const key = keyOf(name);
    const lines = this.#lines ?? this.#copied();
    const at = indexOf(lines, key);
    if (at >= 0) lines.splice(at, lengthOf(lines, at));
  }

  forEach(callback: (value: string, name: string, self: Headers) => void, thisArg?: unknown): void {
    this.#toHeaders().forEach((value, name) => {
      callback.call(thisArg, value, name, this);
    });
  }

  entries(): ReturnType<Headers["entries"]> {
    return this.#toHeaders().entries();
  }

  keys(): ReturnType<Headers["keys"]> {
    return this.#toHeaders().keys();
  }

  values(): ReturnType<Headers["values"]> {
    return this.#toHeaders().values();
  }

  [Symbol.iterator](): ReturnType<Headers["entries"]> {
    return this.entries();
  }

  get [Symbol.toStringTag](): string {
    return "Headers";
  }

  /** Shows the headers in console.log, because the inspector of Headers accepts only real instances. */
  [INSPECT](): Headers {
    return this.#toHeaders();
  }

  /**
   * Returns the header lines to send: name, value, name, value. Values of one name are joined, except those of `set-cookie`. The list must
   * not be changed: it may be the map's own.
   */
  lines(): string[] {
    const all = this.#lines ?? this.#copied();
    return this.#isRepeated ? withoutRepetition(all) : all;
  }

  /** Creates a real Headers, which has fetch's order and grouping. */
  #toHeaders(): Headers {
    const list = new Headers();
    const lines = this.#lines ?? this.#copied();
    for (let i = 0; i < lines.length; i += 2) list.append(lines[i] as string, lines[i + 1] as string);
    return list;
  }

  /** Copies the source to lines, which can be changed. */
  #copied(): string[] {
    const lines: string[] = [];
    for (const name of Object.keys(this.#source)) {
      const value = this.#source[name];
      // The pseudo-headers of HTTP/2 are skipped.
      if (value === undefined || name.startsWith(":")) continue;
      if (typeof value === "string") lines.push(name, value);
      else {
        for (const each of value) lines.push(name, each);
        this.#isRepeated ||= value.length > 1 && name !== "set-cookie";
      }
    }
    this.#lines = lines;
    return lines;
  }
}

/** Returns the index of a name among lines; -1 if it is not there. */
function indexOf(lines: readonly string[], key: string): number {
  for (let i = 0; i < lines.length; i += 2) if (lines[i] === key) return i;
  return -1;
}

/** Returns the length, in strings, of the consecutive lines that have the same name as the line at an index. */
function lengthOf(lines: readonly string[], at: number): number {
  let end = at + 2;
  while (lines[end] === lines[at] && end < lines.length) end += 2;
  return end - at;
}

// Makes `instanceof Headers` hold without the slow constructor of Headers. Headers is read only when that is asked, because Node loads its
// implementation of fetch, which programs that serve may never need, once Headers is first read.
Object.setPrototypeOf(HeaderMap.prototype, new Proxy({}, { getPrototypeOf: () => Headers.prototype }));

/** Valid names in lower case. The cache stays small because programs use few names. */
const keys = new Map<string, string>();

function keyOf(name: string): string {
  const known = keys.get(name);
  if (known !== undefined) return known;
  if (!NAME_CHARACTERS.test(name)) throw new TypeError(`invalid header name "${name}"`);
  const key = name.toLowerCase();
  if (keys.size < 1_000) keys.set(name, key);
  return key;
}

/** Returns the value of a name whose lines are those from `at` to `end`. */
function joined(lines: readonly string[], at: number, end: number): string {
  const values: string[] = [];
  for (let i = at; i < end; i += 2) values.push(lines[i + 1] as string);
  return values.join(lines[at] === "cookie" ? "; " : ", ");
}

function withoutRepetition(lines: readonly string[]): string[] {
  const merged: string[] = [];
  for (let at = 0; at < lines.length; ) {
    const name = lines[at] as string;
    const end = name === "set-cookie" ? at + 2 : at + lengthOf(lines, at);
    merged.push(name, joined(lines, at, end));
    at = end;
  }
  return merged;
}

/** Returns a header value without white space around it. @throws TypeError if it has characters that fetch forbids */
function checked(value: string): string {
  const text = String(value);
  // Trimming is slow, and most values have no white space at their ends, so that is checked first.
  const mayBePadded = text.charCodeAt(0) <= 0x20 || text.charCodeAt(text.length - 1) <= 0x20;
  const trimmed = mayBePadded ? trim(text) : text;
  if (INVALID_VALUE.test(trimmed)) throw new TypeError("invalid header value");
  return trimmed;
}

function trim(text: string): string {
  let [start, end] = [0, text.length];
  while (start < end && WHITESPACE.includes(text.charAt(start))) start++;
  while (end > start && WHITESPACE.includes(text.charAt(end - 1))) end--;
  return text.slice(start, end);
}
