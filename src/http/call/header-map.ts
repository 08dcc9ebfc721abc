/** Headers as Node has parsed them. */
type ParsedHeaders = Readonly<Record<string, string | readonly string[] | undefined>>;

/** `inspect.custom` of node:util, which other runtimes lack. */
const INSPECT = Symbol.for("nodejs.util.inspect.custom");

/** `field-name` of RFC 9110 section 5.1. */
const NAME_CHARACTERS = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
// Characters that fetch forbids in a value: NUL, CR, LF, and code points above 255.
const INVALID_VALUE = /[\0\r\n]|[^\0-\xff]/;
const WHITESPACE = "\t\r\n ";

/**
 * A lazy implementation of fetch's Headers. It reads Node's parsed headers in place until it is changed or iterated, because a real
 * `Headers` per request and response costs more than the rest of a small request.
 */
export class HeaderMap implements Headers {
  #source: ParsedHeaders | undefined;
  #values: Map<string, string[]> | undefined;

  constructor(source?: ParsedHeaders) {
    this.#source = source;
  }

  get(name: string): string | null {
    const key = keyOf(name);
    if (this.#values === undefined) {
      const value = this.#source?.[key];
      // Inherited properties such as "constructor" are neither strings nor arrays.
      return typeof value === "string" ? value : typeof value === "object" ? value.join(", ") : null;
    }
    return this.#values.get(key)?.join(", ") ?? null;
  }

  has(name: string): boolean {
    return this.get(name) !== null;
  }

  getSetCookie(): string[] {
    return [...(this.#all().get("set-cookie") ?? [])];
  }

  set(name: string, value: string): void {
    this.#all().set(keyOf(name), [checked(value)]);
  }

  append(name: string, value: string): void {
    const key = keyOf(name);
    const all = this.#all();
    const values = all.get(key);
    if (values === undefined) all.set(key, [checked(value)]);
    else values.push(checked(value));
  }

  delete(name: string): void {
    this.#all().delete(keyOf(name));
  }

  forEach(callback: (value: string, name: string, self: Headers) => void, thisArg?: unknown): void {
    this.#list().forEach((value, name) => {
      callback.call(thisArg, value, name, this);
    });
  }

  entries(): ReturnType<Headers["entries"]> {
    return this.#list().entries();
  }

  keys(): ReturnType<Headers["keys"]> {
    return this.#list().keys();
  }

  values(): ReturnType<Headers["values"]> {
    return this.#list().values();
  }

  [Symbol.iterator](): ReturnType<Headers["entries"]> {
    return this.entries();
  }

  /** Shows the headers in console.log, because the inspector of Headers accepts only real instances. */
  [INSPECT](): Headers {
    return this.#list();
  }

  /** Returns every header line: name, value, name, value. */
  lines(): string[] {
    const lines: string[] = [];
    if (this.#values === undefined && this.#source === undefined) return lines;
    for (const [name, values] of this.#all()) {
      if (name === "set-cookie") for (const value of values) lines.push(name, value);
      else lines.push(name, values.join(", "));
    }
    return lines;
  }

  /** Creates a real Headers, which has fetch's order and grouping. */
  #list(): Headers {
    const list = new Headers();
    for (const [name, values] of this.#all()) for (const value of values) list.append(name, value);
    return list;
  }

  #all(): Map<string, string[]> {
    if (this.#values !== undefined) return this.#values;
    const all = new Map<string, string[]>();
    for (const [name, value] of Object.entries(this.#source ?? {})) {
      // The pseudo-headers of HTTP/2 are skipped.
      if (value !== undefined && !name.startsWith(":")) all.set(name, typeof value === "string" ? [value] : [...value]);
    }
    this.#values = all;
    return all;
  }
}

// Inherits from Headers, so that `instanceof Headers` holds, without running its slow constructor.
Object.setPrototypeOf(HeaderMap.prototype, Headers.prototype);

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

function checked(value: string): string {
  const text = String(value);
  let [start, end] = [0, text.length];
  while (start < end && WHITESPACE.includes(text.charAt(start))) start++;
  while (end > start && WHITESPACE.includes(text.charAt(end - 1))) end--;
  const trimmed = text.slice(start, end);
  if (INVALID_VALUE.test(trimmed)) throw new TypeError("invalid header value");
  return trimmed;
}
