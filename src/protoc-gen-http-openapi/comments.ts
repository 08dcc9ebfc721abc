import type { AnyDesc, DescFile } from "@bufbuild/protobuf";
import { getComments } from "@bufbuild/protoplugin";

/** Returns the comment of an element as CommonMark; undefined if it has none. */
export function commentOf(desc: Exclude<AnyDesc, DescFile>): string | undefined {
  const { leading, trailing } = getComments(desc);
  const text = (leading ?? trailing ?? "")
    // Internal comments (AIP-192) and directives for tools are removed.
    .replace(/\(--[\s\S]*?--\)/g, "")
    .split("\n")
    .map((line) => line.trimEnd().replace(/^ /, ""))
    .filter((line) => !/^\s*buf:lint:/.test(line))
    .join("\n")
    .trim();
  return text === "" ? undefined : text;
}

/** Splits a comment into its first paragraph, the summary, and the rest. */
export function summaryOf(desc: Exclude<AnyDesc, DescFile>): { summary?: string; description?: string } {
  const [first = "", ...rest] = (commentOf(desc) ?? "").split(/\n{2,}/);
  return {
    ...(first === "" ? {} : { summary: first.replaceAll("\n", " ").replace(/\.$/, "") }),
    ...(rest.length === 0 ? {} : { description: rest.join("\n\n") }),
  };
}
