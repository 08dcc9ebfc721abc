import {
  type DescField,
  type DescMessage,
  fromJson,
  type JsonObject,
  type JsonReadOptions,
  type JsonValue,
} from "@bufbuild/protobuf";
import { isFieldError } from "@bufbuild/protobuf/reflect";
import { hasOwnJson } from "../routes/field-path.ts";
import { isJsonObject } from "./json-values.ts";

/**
 * Returns the path of the value for which protobuf-es has refused the JSON of a message, such as `books[1].author.name`, in the names that
 * the client has used. Its error names at most one field, without those around it. Undefined if the reason is no value of a field.
 */
export function pathOfFault(
  type: DescMessage,
  json: JsonValue,
  { cause }: Error,
  options: Partial<JsonReadOptions>,
): string | undefined {
  const named = isFieldError(cause) ? cause.field() : undefined;
  const path = new FaultFinder(named?.kind === "field" ? named : undefined, options).inMessage(type, json);
  if (path) return path;
  return named?.kind === "field" ? named.jsonName : named?.name;
}

/** Decodes each value once more by itself, so the work is that of decoding the message. Paths are undefined where nothing is wrong. */
class FaultFinder {
  readonly #named: DescField | undefined;
  readonly #options: Partial<JsonReadOptions>;

  constructor(named: DescField | undefined, options: Partial<JsonReadOptions>) {
    this.#named = named;
    this.#options = options;
  }

  inMessage(type: DescMessage, json: JsonValue): string | undefined {
    if (hasOwnJson(type)) return this.#isSound(type, json) ? undefined : "";
    if (!isJsonObject(json)) return "";
    for (const [name, value] of Object.entries(json)) {
      const field = type.fields.find((each) => each.jsonName === name || each.name === name);
      const path = field === undefined || value === null ? undefined : this.#inField(field, name, value);
      if (path !== undefined) return name + path;
    }
    return undefined;
  }

  #inField(field: DescField, name: string, value: JsonValue): string | undefined {
    if (field.message === undefined) {
      // protobuf-es names the fields of scalars, but not those of enums.
      const isSuspect = this.#named === undefined ? field.enum !== undefined : this.#named === field;
      return isSuspect && !this.#isSound(field.parent, { [name]: value }) ? "" : undefined;
    }
    if (field.fieldKind === "message") return this.#inElement(field.message, value, ".");
    const isList = field.fieldKind === "list";
    if (isList ? !Array.isArray(value) : !isJsonObject(value)) return "";
    for (const [key, item] of Object.entries(value as JsonObject)) {
      const path = this.#inElement(field.message, item, `[${key}].`);
      if (path !== undefined) return path;
    }
    return undefined;
  }

  /** @param at what the path of a field within the element begins with */
  #inElement(type: DescMessage, json: JsonValue, at: string): string | undefined {
    const path = this.inMessage(type, json);
    return path === "" ? at.slice(0, -1) : path && at + path;
  }

  #isSound(type: DescMessage, json: JsonValue): boolean {
    try {
      fromJson(type, json, this.#options);
      return true;
    } catch {
      return false;
    }
  }
}
