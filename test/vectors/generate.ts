/** `npm run vectors` writes verifier.json again. Cases that have not changed keep the same bytes. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { signedTexts, type VectorFile } from "./format.ts";
import { createVectors, writeVectors } from "./vectors.ts";

const PATH = join(import.meta.dirname, "verifier.json");
const known: readonly VectorFile[] = existsSync(PATH) ? [JSON.parse(readFileSync(PATH, "utf8"))] : [];
const vectors = createVectors(known.flatMap(({ cases }) => signedTexts(cases)));
writeFileSync(PATH, writeVectors(vectors));
console.log(`${vectors.cases.length} cases`);
