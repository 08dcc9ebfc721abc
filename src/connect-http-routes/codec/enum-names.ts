/** Accepts the names of enum values in any case (`caseInsensitiveEnums`). */
import type { DescEnum } from "@bufbuild/protobuf";
import type { FieldChange } from "./field-values.ts";

const namesOf = new WeakMap<DescEnum, ReadonlyMap<string, string>>();

/** Returns the declared spelling of a name: the name itself if it is declared, else a declared name that differs only in case. */
export function declaredName(type: DescEnum, name: string): string {
  let names = namesOf.get(type);
  if (names === undefined) {
    const reversed = [...type.values].reverse();
    const inLowerCase = reversed.map((value) => [value.name.toLowerCase(), value.name] as const);
    names = new Map([...inLowerCase, ...reversed.map((value) => [value.name, value.name] as const)]);
    namesOf.set(type, names);
  }
  return names.get(name) ?? names.get(name.toLowerCase()) ?? name;
}

/** Replaces the names of enum values by their declared spelling. */
export const DECLARED_ENUMS: FieldChange = {
  isMeant: (field) => field.enum !== undefined,
  change: (field, json) =>
    field.enum !== undefined && typeof json === "string" ? declaredName(field.enum, json) : json,
};
