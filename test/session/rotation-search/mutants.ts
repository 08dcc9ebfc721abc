/** The rules of rotation.ts, each weakened or left out in its own text, and the search that must notice. */
import { readFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import type { decide } from "../../../src/session/rotation.ts";

export type Mutant = {
  readonly name: string;
  readonly text: string;
  readonly becomes: string;
  readonly noticedBy: "browser" | "failover" | "holders" | "close holders";
};

const YOUNG = "now - state.childMintedAt <= reuseInterval";
const NEAR = "young && ahead >= -1 && ahead <= 1";
const SERVED = "now - state.childServedAt <= reuseInterval";
const SINCE = `${SERVED} ? state.childMintedAt : now`;
const CONFIRMED = "token.nonce === state.nonce || token.issuedAt >= state.siblingsSince";

export const MUTANTS: readonly Mutant[] = [
  { name: "no child is young", text: YOUNG, becomes: "false", noticedBy: "browser" },
  { name: "young for R/2", text: YOUNG, becomes: `${YOUNG} / 2`, noticedBy: "browser" },
  { name: "young for 2 R", text: YOUNG, becomes: `${YOUNG} * 2`, noticedBy: "holders" },
  { name: "rule 1 without the child", text: NEAR, becomes: "young && ahead >= -1 && ahead <= 0", noticedBy: "browser" },
  { name: "rule 1 without the confirmed token", text: NEAR, becomes: `${NEAR} && ahead !== 0`, noticedBy: "browser" },
  { name: "rule 1 without the one before", text: NEAR, becomes: `${NEAR} && ahead !== -1`, noticedBy: "browser" },
  { name: "rule 1 for tokens further behind", text: NEAR, becomes: "young && ahead <= 1", noticedBy: "close holders" },
  {
    name: "a repeat that is not remembered",
    text: "next: { ...state, childServedAt: now }",
    becomes: "next: state",
    noticedBy: "browser",
  },
  {
    name: "rule 2 for the current child only",
    text: "if (ahead >= 1)",
    becomes: "if (ahead > 1 || (ahead === 1 && token.nonce === state.childNonce))",
    noticedBy: "browser",
  },
  { name: "no rule 2", text: "if (ahead >= 1)", becomes: "if (ahead > 1)", noticedBy: "browser" },
  { name: "no rule 3", text: "if (ahead >= 1)", becomes: "if (ahead === 1)", noticedBy: "failover" },
  { name: "no sibling counts", text: SINCE, becomes: "now", noticedBy: "browser" },
  { name: "a sibling counts if served R/2 ago", text: SERVED, becomes: `${SERVED} / 2`, noticedBy: "browser" },
  { name: "a sibling counts if served 2 R ago", text: SERVED, becomes: `${SERVED} * 2`, noticedBy: "holders" },
  { name: "the current child always counts", text: SINCE, becomes: "state.childMintedAt", noticedBy: "holders" },
  { name: "every sibling counts", text: CONFIRMED, becomes: "true", noticedBy: "holders" },
  { name: "rule 4 without siblings", text: CONFIRMED, becomes: "token.nonce === state.nonce", noticedBy: "browser" },
  {
    name: "rule 4 for siblings only",
    text: CONFIRMED,
    becomes: "token.issuedAt >= state.siblingsSince",
    noticedBy: "browser",
  },
  { name: "no rule 4", text: `ahead === 0 && (${CONFIRMED})`, becomes: "false", noticedBy: "browser" },
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
];

const source = readFileSync(new URL("../../../src/session/rotation.ts", import.meta.url), "utf8");

export async function mutated({ text, becomes }: Mutant): Promise<typeof decide> {
  const parts = source.split(text);
  if (parts.length !== 2) throw new Error(`rotation.ts says ${parts.length - 1} times: ${text}`);
  const module = stripTypeScriptTypes(parts.join(becomes));
  const { decide: rule } = await import(/* @vite-ignore */ `data:text/javascript,${encodeURIComponent(module)}`);
  return rule as typeof decide;
}
