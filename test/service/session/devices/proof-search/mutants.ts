/**
 * Mutants of the rules for keys that requests prove: in each, one rule is weakened or removed in the text of its module. Each names the
 * search that must fail.
 */
import { stripTypeScriptTypes } from "node:module";
import { sourceOf } from "../../source-of.ts";
import { RULES } from "./searches.ts";
import type { Rules } from "./world.ts";

export type ProofMutant = {
  readonly name: string;
  readonly module: "devices/binding.ts" | "rotation/rotation.ts";
  readonly text: string;
  readonly becomes: string;
  readonly noticedBy: "created bound" | "failover" | "first proof" | "first proof, thief" | "no key";
};

const HELD = 'return device.state === "bound" ? "held" : "first_use"';
const BEFORE = "since > createdAt && issuedAt < since";
const REFUSED = 'isBeforeBinding(device, createdAt, issuedAt) && !isInFlight ? "two_holders" : refusalOf(proof)';
const MINTED = 'return outcome === "repeat" ? "unproven" : "first_use"';
const END = 'proof?.thumbprint === thumbprintOf(device) ? "allowed" : refusalOf(proof)';

export const PROOF_MUTANTS: readonly ProofMutant[] = [
  {
    name: "a proof serves no earlier generation",
    module: "rotation/rotation.ts",
    text: "(isHeld && ahead <= 0)",
    becomes: "false",
    noticedBy: "created bound",
  },
  {
    name: "a proof serves no outdated child",
    module: "rotation/rotation.ts",
    text: "isHeld || token.nonce === childNonce ||",
    becomes: "token.nonce === childNonce ||",
    noticedBy: "first proof",
  },
  {
    name: "the key goes on to rotation as if it were none",
    module: "devices/binding.ts",
    text: HELD,
    becomes: 'return "unproven"',
    noticedBy: "failover",
  },
  {
    name: "any key is as good",
    module: "devices/binding.ts",
    text: "proof !== undefined && proof.thumbprint === thumbprintOf(device)",
    becomes: "proof !== undefined",
    noticedBy: "created bound",
  },
  {
    name: "a copied token ends the session",
    module: "devices/binding.ts",
    text: REFUSED,
    becomes: '"two_holders"',
    noticedBy: "created bound",
  },
  {
    name: "a token of the creation is from before the binding",
    module: "devices/binding.ts",
    text: BEFORE,
    becomes: "issuedAt <= since",
    noticedBy: "created bound",
  },
  {
    name: "a copied token logs out",
    module: "devices/binding.ts",
    text: END,
    becomes: '"allowed"',
    noticedBy: "created bound",
  },
  {
    name: "a token from before the binding shows nothing",
    module: "devices/binding.ts",
    text: REFUSED,
    becomes: "refusalOf(proof)",
    noticedBy: "no key",
  },
  {
    name: "a thief that has bound the session shows nothing to the holder of another key",
    module: "devices/binding.ts",
    text: REFUSED,
    becomes: REFUSED.replace("!isInFlight", "!isInFlight && proof === undefined"),
    noticedBy: "first proof, thief",
  },
  {
    name: "a repeated child is bound, too",
    module: "devices/binding.ts",
    text: MINTED,
    becomes: 'return "first_use"',
    noticedBy: "no key",
  },
];

export async function mutatedRules({ module, text, becomes }: ProofMutant): Promise<Rules> {
  const parts = sourceOf(module).split(text);
  if (parts.length !== 2) throw new Error(`${module} has it ${parts.length - 1} times: ${text}`);
  const code = stripTypeScriptTypes(parts.join(becomes));
  const mutant = await import(/* @vite-ignore */ `data:text/javascript,${encodeURIComponent(code)}`);
  if (module === "rotation/rotation.ts") return { ...RULES, decide: mutant.decide };
  return { ...RULES, judge: mutant.judgeDevice, judgeEnd: mutant.judgeEnd, provenBy: mutant.provenBy };
}
