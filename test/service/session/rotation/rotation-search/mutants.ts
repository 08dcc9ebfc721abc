/** Mutants of rotation.ts: in each, one rule is weakened or removed in the text of the module. Each names the search that must fail. */
import { stripTypeScriptTypes } from "node:module";
import type { decide } from "../../../../../src/service/session/rotation/rotation.ts";
import { sourceOf } from "../../source-of.ts";

export type Mutant = {
  readonly name: string;
  readonly text: string;
  readonly becomes: string;
  readonly noticedBy:
    | "browser"
    | "failover"
    | "holders"
    | "close holders"
    | "poller"
    | "kept asking"
    | "another tab"
    | "clock set back";
};

const YOUNG = "within(childMintedAt, reuseIntervalMs)";
const SERVED = "within(childServedAt, reuseIntervalMs)";
const REPEATED = "(child || confirmed || late)";
const OUTDATED = "token.issuedAt >= childMintedAt - 2 * reuseIntervalMs";
const CONFIRMED = "token.nonce === state.nonce || token.issuedAt >= siblingsSince";
const LATE = "(ahead === 0 || ahead === -1) && within(siblingsSince, 2 * reuseIntervalMs)";
const WITHIN = "Math.abs(now - time) <= limitMs";

export const MUTANTS: readonly Mutant[] = [
  { name: "no child is young", text: YOUNG, becomes: "false", noticedBy: "browser" },
  { name: "young for R/2", text: YOUNG, becomes: "within(childMintedAt, reuseIntervalMs / 2)", noticedBy: "browser" },
  { name: "young for 2 R", text: YOUNG, becomes: "within(childMintedAt, 2 * reuseIntervalMs)", noticedBy: "holders" },
  { name: "rule 1 without the child", text: REPEATED, becomes: "(confirmed || late)", noticedBy: "browser" },
  { name: "rule 1 without the confirmed token", text: REPEATED, becomes: "(child || late)", noticedBy: "another tab" },
  { name: "rule 1 without late requests", text: REPEATED, becomes: "(child || confirmed)", noticedBy: "browser" },
  {
    name: "no late sibling of the confirmed token",
    text: LATE,
    becomes: LATE.replace("ahead === 0 ||", ""),
    noticedBy: "browser",
  },
  { name: "no late parent", text: LATE, becomes: LATE.replace("|| ahead === -1", ""), noticedBy: "browser" },
  {
    name: "late requests from further behind",
    text: LATE,
    becomes: LATE.replace("(ahead === 0 || ahead === -1)", "ahead <= 0"),
    noticedBy: "close holders",
  },
  { name: "late for 1.5 R", text: LATE, becomes: LATE.replace("2 *", "1.5 *"), noticedBy: "browser" },
  {
    name: "late as long as the child is young",
    text: LATE,
    becomes: "(ahead === 0 || ahead === -1)",
    noticedBy: "poller",
  },
  {
    name: "a repeat that is not remembered",
    text: "next: { ...state, childServedAt: now }",
    becomes: "next: state",
    noticedBy: "browser",
  },
  { name: "rule 2 for the current child only", text: OUTDATED, becomes: "false", noticedBy: "browser" },
  {
    name: "a child is outdated after 1.5 R",
    text: OUTDATED,
    becomes: OUTDATED.replace("2 *", "1.5 *"),
    noticedBy: "browser",
  },
  {
    name: "a child is outdated after 2.5 R",
    text: OUTDATED,
    becomes: OUTDATED.replace("2 *", "2.5 *"),
    noticedBy: "kept asking",
  },
  { name: "no child is outdated", text: OUTDATED, becomes: "true", noticedBy: "kept asking" },
  {
    name: "an outdated child is repeated to",
    text: REPEATED,
    becomes: "(ahead === 1 || child || confirmed || late)",
    noticedBy: "kept asking",
  },
  { name: "no rule 2", text: "if (child) {", becomes: "if (false) {", noticedBy: "browser" },
  { name: "no rule 3", text: "if (ahead > 1)", becomes: "if (false)", noticedBy: "failover" },
  {
    name: "no sibling counts",
    text: `${SERVED} ? childMintedAt`,
    becomes: "false ? childMintedAt",
    noticedBy: "browser",
  },
  {
    name: "a sibling counts if served R/2 ago",
    text: SERVED,
    becomes: "within(childServedAt, reuseIntervalMs / 2)",
    noticedBy: "browser",
  },
  {
    name: "a sibling counts if served 2 R ago",
    text: SERVED,
    becomes: "within(childServedAt, 2 * reuseIntervalMs)",
    noticedBy: "holders",
  },
  { name: "the current child always counts", text: ": NEVER;", becomes: ": childMintedAt;", noticedBy: "holders" },
  { name: "late requests although nothing was served", text: ": NEVER;", becomes: ": now;", noticedBy: "poller" },
  { name: "every sibling counts", text: CONFIRMED, becomes: "true", noticedBy: "holders" },
  { name: "rule 4 without siblings", text: CONFIRMED, becomes: "token.nonce === state.nonce", noticedBy: "browser" },
  {
    name: "rule 4 for siblings only",
    text: CONFIRMED,
    becomes: "token.issuedAt >= siblingsSince",
    noticedBy: "browser",
  },
  { name: "no rule 4", text: "if (confirmed) return", becomes: "if (false) return", noticedBy: "browser" },
  {
    name: "recovery with the same child",
    text: '"recover", next: { ...state, ...fresh }',
    becomes: '"recover", next: { ...state, childServedAt: now }',
    noticedBy: "holders",
  },
  {
    name: "no rule 5",
    text: 'return { outcome: "reuse" }',
    becomes: 'return { outcome: "repeat", next: state }',
    noticedBy: "holders",
  },
  { name: "a time in the future is near", text: WITHIN, becomes: "now - time <= limitMs", noticedBy: "clock set back" },
];

const source = sourceOf("rotation/rotation.ts");

export async function mutated({ text, becomes }: Mutant): Promise<typeof decide> {
  const parts = source.split(text);
  if (parts.length !== 2) throw new Error(`rotation.ts label ${parts.length - 1} times: ${text}`);
  const module = stripTypeScriptTypes(parts.join(becomes));
  const { decide: rule } = await import(/* @vite-ignore */ `data:text/javascript,${encodeURIComponent(module)}`);
  return rule as typeof decide;
}
