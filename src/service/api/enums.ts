/** Converts values of the domain and those of enums in .proto files, which have the same names in capitals. */

/** Returns the number of a value. A value that the enum does not have does not compile. */
export function numberOf<Name extends string, Enum extends { readonly [name in Uppercase<Name>]: number }>(
  numbers: Enum,
  name: Name,
): Enum[Uppercase<Name>] {
  return numbers[name.toUpperCase() as Uppercase<Name>];
}

type Named<Enum> = Lowercase<Exclude<keyof Enum & string, "UNSPECIFIED">>;

/** Returns the value of a number; undefined if the number is 0 (UNSPECIFIED), or none of the enum. */
export function nameOf<Enum extends Readonly<Record<string, number>>>(
  numbers: Enum,
  number: number,
): Named<Enum> | undefined {
  const [name] = Object.entries(numbers).find(([, each]) => each === number && each !== 0) ?? [];
  return name?.toLowerCase() as Named<Enum> | undefined;
}
