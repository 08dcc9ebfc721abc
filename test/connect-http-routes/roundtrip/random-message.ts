import { create, type DescField, type DescMessage, type Message, ScalarType } from "@bufbuild/protobuf";
import { type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import {
  anyPack,
  DurationSchema,
  FieldMaskSchema,
  ListValueSchema,
  NullValue,
  StructSchema,
  TimestampSchema,
  type Value,
  ValueSchema,
} from "@bufbuild/protobuf/wkt";
import type { Random } from "./random.ts";

/** The value of LEGACY_REQUIRED in google.protobuf.FeatureSet.FieldPresence. */
const REQUIRED = 3;

export type Admit = (field: DescField) => boolean;

/** Returns a message of this type with random values in some of the fields that `admits` allows. */
export function randomMessage(random: Random, type: DescMessage, admits: Admit, depth = 3): Message {
  const special = wellKnown(random, type);
  if (special !== undefined) return special;
  const message = reflect(type);
  const density = type.fields.length > 12 ? 5 / type.fields.length : 0.4;
  for (const field of type.fields) {
    const required = field.presence === REQUIRED;
    if (!required && (!admits(field) || !random.chance(density))) continue;
    if (!required && field.message !== undefined && depth <= 0) continue;
    setRandom(random, message, field, admits, depth);
  }
  return message.message;
}

/** Sets a field to a random value. */
export function setRandom(random: Random, message: ReflectMessage, field: DescField, admits: Admit, depth = 3): void {
  const element = () =>
    field.message !== undefined
      ? reflect(field.message, randomMessage(random, field.message, admits, depth - 1))
      : field.enum !== undefined
        ? random.pick(field.enum.values).number
        : randomScalar(random, field.scalar as ScalarType);
  if (field.fieldKind === "list") {
    const list = message.get(field);
    for (let count = 1 + random.below(3); count > 0; count--) list.add(element() as never);
  } else if (field.fieldKind === "map") {
    const map = message.get(field);
    for (let count = 1 + random.below(2); count > 0; count--) {
      map.set(randomScalar(random, field.mapKey) as never, element() as never);
    }
  } else message.set(field, element() as never);
}

const TEXTS = [
  "",
  "a",
  "ä€😀",
  "a/b%2Fc",
  "+ &=;#?",
  "__proto__",
  "\\\"'",
  "a:b",
  "1",
  "null",
  "*",
  "\u0000\u007f",
  "-_.~",
];

export function randomText(random: Random): string {
  if (random.chance(0.5)) return random.pick(TEXTS);
  let text = "";
  for (let length = 1 + random.below(12); length > 0; length--) {
    const code = random.chance(0.8) ? 32 + random.below(95) : random.below(0xd800);
    text += String.fromCodePoint(code);
  }
  return text;
}

export function randomScalar(random: Random, type: ScalarType): unknown {
  switch (type) {
    case ScalarType.STRING:
      return randomText(random);
    case ScalarType.BOOL:
      return random.chance(0.5);
    case ScalarType.BYTES:
      return Uint8Array.from({ length: random.below(12) }, () => random.below(256));
    case ScalarType.DOUBLE:
      return randomFloat(random);
    case ScalarType.FLOAT:
      return Math.fround(randomFloat(random));
    case ScalarType.INT32:
    case ScalarType.SINT32:
    case ScalarType.SFIXED32:
      return Number(random.bits(32)) | 0;
    case ScalarType.UINT32:
    case ScalarType.FIXED32:
      return Number(random.bits(32));
    case ScalarType.UINT64:
    case ScalarType.FIXED64:
      return random.bits(64);
    default:
      return BigInt.asIntN(64, random.bits(64));
  }
}

function randomFloat(random: Random): number {
  if (random.chance(0.2))
    return random.pick([0, -0, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 1e-7]);
  return (random.next() - 0.5) * 10 ** random.below(30);
}

function randomValue(random: Random, depth: number): Value {
  const kinds = depth > 0 ? 6 : 4;
  switch (random.below(kinds)) {
    case 0:
      return create(ValueSchema, { kind: { case: "nullValue", value: NullValue.NULL_VALUE } });
    case 1:
      return create(ValueSchema, { kind: { case: "boolValue", value: random.chance(0.5) } });
    case 2:
      return create(ValueSchema, { kind: { case: "numberValue", value: random.below(1e6) / 8 } });
    case 3:
      return create(ValueSchema, { kind: { case: "stringValue", value: randomText(random) } });
    case 4: {
      const values = Array.from({ length: random.below(3) }, () => randomValue(random, depth - 1));
      return create(ValueSchema, { kind: { case: "listValue", value: create(ListValueSchema, { values }) } });
    }
    default:
      return create(ValueSchema, { kind: { case: "structValue", value: randomStruct(random, depth - 1) } });
  }
}

function randomStruct(random: Random, depth: number) {
  const fields: Record<string, Value> = {};
  for (let count = random.below(3); count > 0; count--) {
    const key = randomText(random);
    if (key !== "__proto__") fields[key] = randomValue(random, depth);
  }
  // A Struct inside a Value is a message in protobuf-es. Only as a field of other messages it is JSON.
  return create(StructSchema, { fields });
}

function wellKnown(random: Random, type: DescMessage): Message | undefined {
  const nanos = () => random.pick([0, 0, 1, 500_000_000, 999_999_999, random.below(1e9)]);
  switch (type.typeName) {
    case "google.protobuf.Timestamp": {
      const seconds = random.bits(38) % 253_402_300_800n;
      return create(TimestampSchema, {
        seconds: random.chance(0.2) ? -(seconds % 62_135_596_800n) : seconds,
        nanos: nanos(),
      });
    }
    case "google.protobuf.Duration": {
      const [seconds, n] = [random.bits(38) % 315_576_000_000n, nanos()];
      return create(DurationSchema, random.chance(0.3) ? { seconds: -seconds, nanos: -n } : { seconds, nanos: n });
    }
    case "google.protobuf.FieldMask": {
      const paths = ["name", "some_name", "inner.id", "inner.some_tags", "a.b.c"];
      return create(FieldMaskSchema, { paths: Array.from({ length: 1 + random.below(3) }, () => random.pick(paths)) });
    }
    case "google.protobuf.Struct":
      return asType(type, randomStruct(random, 2));
    case "google.protobuf.Value":
      return asType(type, randomValue(random, 2));
    case "google.protobuf.ListValue":
      return asType(type, create(ListValueSchema, { values: [randomValue(random, 1), randomValue(random, 1)] }));
    case "google.protobuf.Any":
      return anyPack(DurationSchema, create(DurationSchema, { seconds: BigInt(random.below(1000)) }));
    default:
      return undefined;
  }
}

/** Converts a message of generated code to a type that was loaded at run time. Their descriptors differ, but the fields are the same. */
function asType(type: DescMessage, message: Message): Message {
  return message.$typeName === type.typeName ? message : create(type, message as never);
}
