import { decodeAll, encodeLiteral } from "./percent.ts";

export interface Template {
  /** `*`, `**`, or a literal in canonical percent-encoding, so that a literal never equals `*`. */
  readonly segments: readonly string[];
  /** The custom verb in canonical percent-encoding, without its first colon; empty if there is none. */
  readonly verb: string;
  readonly variables: readonly Variable[];
}

/** A variable that binds the segments from `start` (inclusive) to `end` (exclusive). */
export interface Variable {
  /** The path of the request field, in proto names: `book.name`. */
  readonly field: string;
  readonly start: number;
  readonly end: number;
  /** Whether the variable can bind several segments. If so, `%2F` in its value is not decoded (http.proto). */
  readonly multi: boolean;
}

/** A template violates the grammar. */
export class TemplateError extends Error {
  override readonly name = "TemplateError";
  readonly template: string;
  /** The position in the template, in characters, counted from 1. */
  readonly column: number;
  readonly reason: string;
  constructor(template: string, column: number, reason: string) {
    super(`invalid path template "${template}": column ${column}: ${reason}`);
    this.template = template;
    this.column = column;
    this.reason = reason;
  }
}

// pchar of RFC 3986 except `*` and `:`, which have a meaning in templates.
const LITERAL_CHARACTER = /[A-Za-z0-9\-._~!$&'()+,;=@%]/;
const IDENTIFIER_START = /[A-Za-z_]/;
const IDENTIFIER_CHARACTER = /[A-Za-z0-9_]/;

/**
 * Parses a path template by the grammar of google/api/http.proto:
 *
 *     Template = "/" Segments [ Verb ] ;
 *     Segments = Segment { "/" Segment } ;
 *     Segment  = "*" | "**" | LITERAL | Variable ;
 *     Variable = "{" FieldPath [ "=" Segments ] "}" ;
 *     FieldPath = IDENT { "." IDENT } ;
 *     Verb     = ":" LITERAL ;
 *
 * Extensions to the grammar: `/` alone is a template, literals may follow `**` (as on Google's servers), and a verb may
 * contain colons (`:a:b`, as in grpc-gateway).
 * @throws TemplateError
 */
export function parseTemplate(source: string): Template {
  return new Parser(source).template();
}

class Parser {
  readonly #source: string;
  readonly #segments: string[] = [];
  readonly #variables: Variable[] = [];
  #at = 0;
  #wild = false;

  constructor(source: string) {
    this.#source = source;
  }

  template(): Template {
    if (!this.#take("/")) throw this.#expected(`"/"`);
    let verb = "";
    if (this.#source.length > 1) {
      this.#segmentList(false);
      if (this.#take(":")) verb = this.#verb();
    }
    if (this.#at < this.#source.length) {
      throw this.#error(this.#at, `unexpected ${this.#here()}, expected "/"${verb === "" ? `, ":"` : ""} or the end`);
    }
    return { segments: this.#segments, verb, variables: this.#variables };
  }

  #segmentList(inVariable: boolean): void {
    do {
      const at = this.#at;
      if (this.#peek() === "{") {
        if (inVariable) throw this.#error(at, "a variable inside a variable");
        this.#variable();
      } else if (this.#take("*")) {
        this.#wildcard(this.#take("*") ? "**" : "*", at);
      } else {
        this.#segments.push(this.#literal("a segment"));
      }
    } while (this.#take("/"));
  }

  #wildcard(kind: "*" | "**", at: number): void {
    if (this.#wild) throw this.#error(at, `only literals may follow "**"`);
    this.#wild = kind === "**";
    this.#segments.push(kind);
  }

  #variable(): void {
    const at = this.#at++;
    const field = this.#fieldPath();
    if (this.#variables.some((other) => other.field === field)) throw this.#error(at, `duplicate variable "${field}"`);
    const start = this.#segments.length;
    if (this.#take("=")) this.#segmentList(true);
    else this.#wildcard("*", at);
    if (!this.#take("}")) throw this.#expected(`"}"`);
    const end = this.#segments.length;
    const multi = end - start > 1 || this.#segments[start] === "**";
    this.#variables.push({ field, start, end, multi });
  }

  #fieldPath(): string {
    const start = this.#at;
    do {
      if (!IDENTIFIER_START.test(this.#peek())) throw this.#expected("a field name");
      while (IDENTIFIER_CHARACTER.test(this.#peek())) this.#at++;
    } while (this.#take("."));
    return this.#source.slice(start, this.#at);
  }

  #verb(): string {
    let verb = this.#literal("a verb");
    while (this.#take(":")) verb += `:${this.#literal("a verb")}`;
    // The verb is encoded canonically: `:a%3Ab` and `:a:b` are the same verb.
    return verb.replaceAll("%3A", ":");
  }

  #literal(what: string): string {
    const start = this.#at;
    while (LITERAL_CHARACTER.test(this.#peek())) {
      if (this.#peek() === "%" && !/^%[0-9A-Fa-f]{2}/.test(this.#source.slice(this.#at, this.#at + 3))) {
        throw this.#error(this.#at, "malformed percent-encoding");
      }
      this.#at++;
    }
    if (this.#at === start) throw this.#expected(what);
    try {
      return encodeLiteral(decodeAll(this.#source.slice(start, this.#at)));
    } catch {
      throw this.#error(start, "percent-encoding that is not UTF-8");
    }
  }

  #peek(): string {
    return this.#source.charAt(this.#at);
  }

  #take(character: string): boolean {
    if (this.#peek() !== character) return false;
    this.#at++;
    return true;
  }

  #here(): string {
    return this.#at < this.#source.length ? `"${this.#peek()}"` : "the end";
  }

  #expected(what: string): TemplateError {
    return this.#error(this.#at, `expected ${what}, found ${this.#here()}`);
  }

  #error(at: number, reason: string): TemplateError {
    return new TemplateError(this.#source, at + 1, reason);
  }
}
