/** The options of fields as schema keywords: `buf.validate` rules and `google.api.field_behavior` (AIP-203). */
import { type DescField, getOption, ScalarType } from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";
import { type FieldRules, Ignore, field as rulesOption, type StringRules } from "../../gen/buf/validate/validate_pb.ts";
import { field_behavior as behaviorOption, FieldBehavior } from "../../gen/google/api/field_behavior_pb.ts";
import type { Schema } from "./well-known.ts";

/** Bytes of the longest character in UTF-8. */
const MAX_BYTES_PER_CHARACTER = 4;

/** Whether requests must set a field. */
export function isRequired(field: DescField): boolean {
  return (
    field.presence === FeatureSet_FieldPresence.LEGACY_REQUIRED ||
    getOption(field, rulesOption).required ||
    getOption(field, behaviorOption).includes(FieldBehavior.REQUIRED)
  );
}

/** The direction in which a field is used, if not both. */
export function directionOf(field: DescField): Schema {
  const behaviors = getOption(field, behaviorOption);
  if (behaviors.includes(FieldBehavior.OUTPUT_ONLY)) return { readOnly: true };
  return behaviors.includes(FieldBehavior.INPUT_ONLY) ? { writeOnly: true } : {};
}

/** The keywords for the value of a field, with all elements if it is repeated. */
export function fieldKeywords(field: DescField): Schema {
  const rules = getOption(field, rulesOption);
  const ignored = ignores(field, rules);
  if (field.fieldKind !== "list") return ignored ? {} : { ...nonEmpty(field, rules), ...valueKeywords(rules) };
  if (ignored || rules.type.case !== "repeated") return rules.required ? { minItems: 1 } : {};
  const { minItems, maxItems, unique } = rules.type.value;
  const least = Math.max(Number(minItems), rules.required ? 1 : 0);
  return {
    ...(least > 0 && { minItems: least }),
    ...(maxItems > 0n && { maxItems: Number(maxItems) }),
    ...(unique && { uniqueItems: true }),
  };
}

/** A required text is not empty. */
function nonEmpty({ scalar, presence }: DescField, { required }: FieldRules): Schema {
  const needed = required && scalar === ScalarType.STRING && presence === FeatureSet_FieldPresence.IMPLICIT;
  return needed ? { minLength: 1 } : {};
}

/** The keywords for one element of a repeated field. */
export function itemKeywords(field: DescField): Schema {
  const { type } = getOption(field, rulesOption);
  return type.case === "repeated" && type.value.items ? valueKeywords(type.value.items) : {};
}

/** Whether the rules do not apply. Without presence, zero and absent are the same: `IF_ZERO_VALUE` then has no keyword. */
function ignores(field: DescField, { ignore }: FieldRules): boolean {
  if (ignore === Ignore.ALWAYS) return true;
  return ignore === Ignore.IF_ZERO_VALUE && field.presence === FeatureSet_FieldPresence.IMPLICIT;
}

function valueKeywords({ type }: FieldRules): Schema {
  switch (type.case) {
    case "int32":
    case "uint32": {
      const { lessThan, greaterThan } = type.value;
      return {
        ...(greaterThan.case === "gte" && { minimum: greaterThan.value }),
        ...(greaterThan.case === "gt" && { exclusiveMinimum: greaterThan.value }),
        ...(lessThan.case === "lte" && { maximum: lessThan.value }),
        ...(lessThan.case === "lt" && { exclusiveMaximum: lessThan.value }),
      };
    }
    case "string":
      return stringKeywords(type.value);
    default:
      return {};
  }
}

/** JSON Schema counts characters: limits in bytes become the bounds that they imply. */
function stringKeywords({ minLen, maxLen, minBytes, maxBytes, pattern }: StringRules): Schema {
  const least = Math.max(Number(minLen), Math.ceil(Number(minBytes) / MAX_BYTES_PER_CHARACTER));
  const most = [maxLen, maxBytes].filter((limit) => limit > 0n).map(Number);
  return {
    ...(least > 0 && { minLength: least }),
    ...(most.length > 0 && { maxLength: Math.min(...most) }),
    ...(pattern !== "" && { pattern }),
  };
}
