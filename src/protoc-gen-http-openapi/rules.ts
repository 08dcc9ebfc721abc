/** Maps the options of fields to schema keywords: `buf.validate` rules, `google.api.field_behavior` (AIP-203) and `field_info`. */
import {
  type DescEnum,
  type DescField,
  type DescMessage,
  type DescOneof,
  getOption,
  isFieldSet,
  ScalarType,
  toJson,
} from "@bufbuild/protobuf";
import { DurationSchema, FeatureSet_FieldPresence, TimestampSchema } from "@bufbuild/protobuf/wkt";
import {
  type FieldRules,
  FieldRulesSchema,
  Ignore,
  type MessageOneofRule,
  message as messageOption,
  oneof as oneofOption,
  field as rulesOption,
} from "../../gen/buf/validate/validate_pb.ts";
import { field_behavior as behaviorOption, FieldBehavior } from "../../gen/google/api/field_behavior_pb.ts";
import { field_info as infoOption } from "../../gen/google/api/field_info_pb.ts";
import type { Json } from "./json.ts";
import { bytesKeywords, infoKeywords, stringKeywords } from "./string-rules.ts";
import { enumKeywords, floatKeywords, integerKeywords, longBounds, longKeywords } from "./value-rules.ts";
import type { Schema } from "./well-known.ts";

/** Whether requests must set a field. */
export function isRequired(field: DescField): boolean {
  return (
    field.presence === FeatureSet_FieldPresence.LEGACY_REQUIRED ||
    getOption(field, rulesOption).required ||
    getOption(field, behaviorOption).includes(FieldBehavior.REQUIRED)
  );
}

/** Returns the keyword for a field that only requests or only responses have. */
export function directionOf(field: DescField): Schema {
  const behaviors = getOption(field, behaviorOption);
  if (behaviors.includes(FieldBehavior.OUTPUT_ONLY)) return { readOnly: true };
  return behaviors.includes(FieldBehavior.INPUT_ONLY) ? { writeOnly: true } : {};
}

/** Describes in words those rules of a field that no schema keyword can express. */
export function notesOf(field: DescField): string[] {
  const behaviors = getOption(field, behaviorOption);
  const { type } = getOption(field, rulesOption);
  const notes: (string | undefined)[] = [];
  if (behaviors.includes(FieldBehavior.IMMUTABLE)) notes.push("Immutable: set at creation.");
  if (behaviors.includes(FieldBehavior.UNORDERED_LIST)) notes.push("In no particular order.");
  if (behaviors.includes(FieldBehavior.NON_EMPTY_DEFAULT)) notes.push("If it is not set, a default applies.");
  if (isLong(type)) notes.push(longBounds(type.value));
  return notes.filter((note) => note !== undefined);
}

/** Maps the rules of fields to keywords. */
export class Keywords {
  readonly #enumAsInteger: boolean;

  /** @param enumAsInteger whether values of enums are numbers in JSON */
  constructor(enumAsInteger: boolean) {
    this.#enumAsInteger = enumAsInteger;
  }

  /** Returns the keywords for the value of a field; a repeated field is one value. */
  ofField(field: DescField): Schema {
    const rules = getOption(field, rulesOption);
    const ignored = ignores(field, rules);
    if (field.fieldKind === "list") return listKeywords(rules, ignored);
    if (field.fieldKind === "map") return mapKeywords(rules, ignored);
    const info = infoKeywords(getOption(field, infoOption).format);
    return { ...info, ...(!ignored && { ...nonEmpty(field, rules), ...this.#ofValue(rules, field.enum) }) };
  }

  /** Returns the keywords for one element of a repeated field, or for one value of a map. */
  ofItem(field: DescField): Schema {
    const { type } = getOption(field, rulesOption);
    const { format } = getOption(field, infoOption);
    const rules = type.case === "repeated" ? type.value.items : type.case === "map" ? type.value.values : undefined;
    return { ...infoKeywords(format), ...(rules && this.#ofValue(rules, field.enum)) };
  }

  #ofValue(rules: FieldRules, enumType: DescEnum | undefined): Schema {
    const { type } = rules;
    if (type.case !== "enum") return valueKeywords(rules);
    return enumKeywords(type.value, enumType, isConstSet(type), this.#enumAsInteger);
  }
}

function listKeywords(rules: FieldRules, ignored: boolean): Schema {
  const own = ignored || rules.type.case !== "repeated" ? undefined : rules.type.value;
  const counts = countKeywords("Items", rules, own?.minItems, own?.maxItems);
  return { ...counts, ...(own?.unique && { uniqueItems: true }) };
}

function mapKeywords(rules: FieldRules, ignored: boolean): Schema {
  const own = ignored || rules.type.case !== "map" ? undefined : rules.type.value;
  return countKeywords("Properties", rules, own?.minPairs, own?.maxPairs);
}

function countKeywords(what: "Items" | "Properties", { required }: FieldRules, min = 0n, max = 0n): Schema {
  const least = Math.max(Number(min), required ? 1 : 0);
  return { ...(least > 0 && { [`min${what}`]: least }), ...(max > 0n && { [`max${what}`]: Number(max) }) };
}

/** A required text must not be empty. */
function nonEmpty({ scalar, presence }: DescField, { required }: FieldRules): Schema {
  const needed = required && scalar === ScalarType.STRING && presence === FeatureSet_FieldPresence.IMPLICIT;
  return needed ? { minLength: 1 } : {};
}

/** Returns the keywords for the keys of a map, which are strings in JSON. */
export function mapKeyKeywords(field: DescField): Schema {
  const { type } = getOption(field, rulesOption);
  const keys = type.case === "map" ? type.value.keys?.type : undefined;
  return keys?.case === "string" ? stringKeywords(keys.value) : {};
}

/** Whether one member of a oneof must be set. */
export function isOneofRequired(oneof: DescOneof): boolean {
  return getOption(oneof, oneofOption).required;
}

/** Returns the groups of fields of which at most one may be set. Oneofs are not among them. */
export function exclusiveGroups(type: DescMessage): readonly MessageOneofRule[] {
  return getOption(type, messageOption).oneof;
}

/** Returns whether the schema leaves out the rules of a field: `IF_ZERO_VALUE` exempts a zero value, which no keyword can express. */
function ignores(field: DescField, { ignore }: FieldRules): boolean {
  if (ignore === Ignore.ALWAYS) return true;
  return ignore === Ignore.IF_ZERO_VALUE && field.presence === FeatureSet_FieldPresence.IMPLICIT;
}

type Rules = FieldRules["type"];
type LongRules = Extract<Rules, { case: "int64" | "uint64" | "sint64" | "fixed64" | "sfixed64" }>;

function isLong(type: Rules): type is LongRules {
  return /^(?:s?int|uint|s?fixed)64$/.test(type.case ?? "");
}

function valueKeywords({ type }: FieldRules): Schema {
  const hasConst = isConstSet(type);
  if (isLong(type)) return longKeywords(type.value, hasConst);
  switch (type.case) {
    case "int32":
    case "sint32":
    case "sfixed32":
    case "uint32":
    case "fixed32":
      return integerKeywords(type.value, hasConst);
    case "float":
    case "double":
      return floatKeywords(type.value, type.case, hasConst);
    case "bool":
      return { ...(hasConst && { const: type.value.const }) };
    case "string":
      return { ...stringKeywords(type.value), ...(hasConst && { const: type.value.const }) };
    case "bytes":
      return bytesKeywords(type.value);
    case "duration":
      return examples(type.value.example.map((value) => toJson(DurationSchema, value)));
    case "timestamp":
      return examples(type.value.example.map((value) => toJson(TimestampSchema, value)));
    default:
      return {};
  }
}

function examples(values: readonly Json[]): Schema {
  return values.length > 0 ? { examples: values } : {};
}

/** Whether the rules have a `const`, even one with the zero value. */
function isConstSet({ case: kind, value }: Rules): boolean {
  const schema = FieldRulesSchema.fields.find(({ localName }) => localName === kind)?.message;
  const field = schema?.fields.find(({ name }) => name === "const");
  return value !== undefined && field !== undefined && isFieldSet(value, field);
}
