/** The supported rules of `buf.validate`, with the descriptions of protovalidate. src/service/protoc-gen-rules refuses all other rules. */
import type { Duration } from "@bufbuild/protobuf/wkt";

export const CHECKS = {
  "string.min_bytes": (least: number) => ({
    description: `must be at least ${least} bytes`,
    holds: (text: string) => Buffer.byteLength(text) >= least,
  }),
  "string.max_bytes": (most: number) => ({
    description: `must be at most ${most} bytes`,
    holds: (text: string) => Buffer.byteLength(text) <= most,
  }),
  "string.pattern": (source: string) => {
    const pattern = new RegExp(source, "u");
    return {
      description: `does not match regex pattern \`${source}\``,
      holds: (text: string) => pattern.test(text),
    };
  },
  "int32.gte": (least: number) => ({
    description: `must be greater than or equal to ${least}`,
    holds: (value: number) => value >= least,
  }),
  /** @param leastSeconds the limit in whole seconds */
  "duration.gte": (leastSeconds: number) => {
    const least = BigInt(leastSeconds);
    return {
      description: `must be greater than or equal to ${leastSeconds}s`,
      holds: ({ seconds, nanos }: Duration) => seconds > least || (seconds === least && nanos >= 0),
    };
  },
  /** @param values the numbers that the enum declares */
  "enum.defined_only": (values: readonly number[]) => ({
    description: "value must be one of the defined enum values",
    holds: (value: number) => values.includes(value),
  }),
  "repeated.max_items": (most: number) => ({
    description: `must contain no more than ${most} item(s)`,
    holds: (items: readonly unknown[]) => items.length <= most,
  }),
  "repeated.unique": (_: true) => ({
    description: "repeated value must contain unique items",
    holds: (items: readonly unknown[]) => new Set(items).size === items.length,
  }),
};

export type RuleId = keyof typeof CHECKS;
export type ArgumentOf<Id extends RuleId> = Parameters<(typeof CHECKS)[Id]>[0];
