import { type DescField, type JsonValue, type JsonWriteOptions, toJson } from "@bufbuild/protobuf";
import { type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import type { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";

/** A number, because an import of the enum would add the descriptors of descriptor.proto to the bundles of clients. */
const LEGACY_REQUIRED = 3 satisfies FeatureSet_FieldPresence.LEGACY_REQUIRED;

/** Returns the JSON of a message in which only one field is set, to its default value if need be, and those that proto2 requires. */
export function fieldJson(
  message: ReflectMessage,
  field: DescField,
  options: Partial<JsonWriteOptions>,
): { readonly [name: string]: JsonValue } {
  const alone = reflect(message.desc);
  for (const each of message.fields) {
    // protobuf-es encodes no message without the fields that the language requires.
    if (each === field || each.presence === LEGACY_REQUIRED) alone.set(each, message.get(each));
  }
  return toJson(message.desc, alone.message, options) as { [name: string]: JsonValue };
}
