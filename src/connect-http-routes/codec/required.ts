import type { DescField, DescMessage, Message } from "@bufbuild/protobuf";
import { type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";
import { typesWithin } from "../routes/field-path.ts";

/** Returns the path of a field that must be set and is not, in JSON names; undefined if there is none. */
type FindMissing = (message: Message) => string | undefined;

/**
 * Returns a function that finds a missing field in messages of this type; undefined if the language requires none, at any depth (`required`
 * of proto2, LEGACY_REQUIRED of editions). protobuf-es only refuses to encode such a message, which is too late.
 */
export function createRequiredCheck(type: DescMessage): FindMissing | undefined {
  const checked = new Set([...typesWithin(type)].filter(requiresSome));
  return checked.has(type) ? (message) => findMissing(reflect(type, message), checked) : undefined;
}

const requiresSome = (type: DescMessage) => [...typesWithin(type)].some(({ fields }) => fields.some(isRequired));

const isRequired = ({ presence }: DescField) => presence === FeatureSet_FieldPresence.LEGACY_REQUIRED;

/** @param checked the types that require something, at any depth */
function findMissing(message: ReflectMessage, checked: ReadonlySet<DescMessage>): string | undefined {
  for (const field of message.fields) {
    if (!message.isSet(field)) {
      if (isRequired(field)) return field.jsonName;
      continue;
    }
    if (field.message === undefined || !checked.has(field.message)) continue;
    for (const inner of messagesOf(message, field)) {
      const missing = findMissing(inner, checked);
      if (missing !== undefined) return `${field.jsonName}.${missing}`;
    }
  }
  return undefined;
}

/** Returns the messages that a field contains. */
function messagesOf(message: ReflectMessage, field: DescField): Iterable<ReflectMessage> {
  if (field.fieldKind === "message") return [message.get(field)];
  if (field.fieldKind === "list" && field.listKind === "message") return message.get(field) as Iterable<ReflectMessage>;
  if (field.fieldKind === "map" && field.mapKind === "message")
    return message.get(field).values() as Iterable<ReflectMessage>;
  return [];
}
