import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";

/** Well-known messages whose JSON is a scalar, which a path segment or a query parameter can carry. */
export const TEXT_MESSAGES: ReadonlySet<string> = new Set(
  [
    "Timestamp",
    "Duration",
    "FieldMask",
    "DoubleValue",
    "FloatValue",
    "Int64Value",
    "UInt64Value",
    "Int32Value",
    "UInt32Value",
    "BoolValue",
    "StringValue",
    "BytesValue",
  ].map((name) => `google.protobuf.${name}`),
);

/** Messages of arbitrary JSON. A query parameter carries them as JSON text; a path variable cannot. */
export const JSON_MESSAGES: ReadonlySet<string> = new Set(
  ["Struct", "Value", "ListValue"].map((name) => `google.protobuf.${name}`),
);

/**
 * Whether proto JSON has a special form for messages of this type. Their fields cannot be set one by one, because the result may have no
 * JSON form (a Timestamp with -5 ns).
 */
export function hasOwnJson({ typeName }: DescMessage): boolean {
  return TEXT_MESSAGES.has(typeName) || JSON_MESSAGES.has(typeName) || typeName === "google.protobuf.Any";
}

/** Returns the types of a message and of all messages that it can contain, but for those in an Any. */
export function typesWithin(type: DescMessage): ReadonlySet<DescMessage> {
  const types = new Set([type]);
  for (const { fields } of types) for (const { message } of fields) if (message !== undefined) types.add(message);
  return types;
}

/** Returns the type of a singular message field; undefined for other fields. */
export function messageType(field: DescField | undefined): DescMessage | undefined {
  return field?.fieldKind === "message" ? field.message : undefined;
}

/** Whether content of this type is raw bytes, not JSON. */
export function isHttpBody(type: DescMessage | undefined): boolean {
  return type?.typeName === "google.api.HttpBody";
}

/** Whether a field holds files, which parts of an upload carry: `google.api.HttpBody`, with their content type, or bytes. */
export function isFileField(field: DescField): boolean {
  if (field.fieldKind === "map") return false;
  return isHttpBody(field.message) || field.scalar === ScalarType.BYTES;
}

/** Whether a query parameter can carry a value of this field (an element, if it is repeated). */
export function isTextField(field: DescField): boolean {
  const message = field.fieldKind === "message" || field.fieldKind === "list" ? field.message : undefined;
  if (field.fieldKind === "map") return false;
  return message === undefined || isTextMessage(message);
}

/** Whether a query parameter `name[key]` can carry an entry of this field. */
export function isTextMap(field: DescField): boolean {
  return field.fieldKind === "map" && (field.mapKind !== "message" || isTextMessage(field.message));
}

function isTextMessage(type: DescMessage): boolean {
  return TEXT_MESSAGES.has(type.typeName) || JSON_MESSAGES.has(type.typeName);
}

/** Returns the top-level field with this proto name, or undefined. */
export function fieldByName(message: DescMessage, name: string): DescField | undefined {
  return message.fields.find((field) => field.name === name);
}

/** Returns the field that a route names as its body. @throws Error if there is none: the table does not match the descriptors */
export function bodyField(message: DescMessage, name: string): DescField | undefined {
  if (name === "" || name === "*") return undefined;
  const field = fieldByName(message, name);
  if (field === undefined)
    throw new Error(`message ${message.typeName} has no field "${name}": generate the routes again`);
  return field;
}

/** The fields of a path, outermost first, or why it does not exist. */
type ResolvedPath =
  | { readonly ok: true; readonly fields: readonly DescField[] }
  | { readonly ok: false; readonly reason: string };

/** Resolves a path of proto names such as `book.author.name`. */
export function resolveFieldPath(message: DescMessage, path: string): ResolvedPath {
  const fields: DescField[] = [];
  let within: DescMessage | undefined = message;
  for (const name of path.split(".")) {
    if (within === undefined) {
      return { ok: false, reason: `field "${fields.at(-1)?.name}" of ${path} is not a message, it has no fields` };
    }
    const field = fieldByName(within, name);
    if (field === undefined) return { ok: false, reason: `message ${within.typeName} has no field "${name}"` };
    fields.push(field);
    within = messageType(field);
  }
  return { ok: true, fields };
}

/** Returns why a path variable cannot bind these fields, or undefined if it can. */
export function pathFieldProblem(fields: readonly DescField[]): string | undefined {
  for (const field of fields) {
    if (field.fieldKind === "map") return `"${field.name}" is a map field`;
    if (field.fieldKind === "list") return `"${field.name}" is a repeated field`;
  }
  for (const field of fields.slice(0, -1)) {
    if (field.fieldKind === "message" && hasOwnJson(field.message)) {
      return `"${field.name}" is a ${field.message.typeName}, which has no fields in JSON`;
    }
  }
  const last = fields.at(-1);
  if (last?.fieldKind === "message" && !TEXT_MESSAGES.has(last.message.typeName)) {
    return `"${last.name}" is a message field of type ${last.message.typeName}`;
  }
  return undefined;
}
