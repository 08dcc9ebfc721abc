/**
 * Adds the cases that are not frozen yet to the frozen file of their version, as part of `npm run release`: verifiers in use rely on cases
 * that have been released.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { VectorFile } from "./format.ts";
import { writeVectors } from "./vectors.ts";

const FROZEN = join(import.meta.dirname, "frozen");
const read = (path: string): VectorFile => JSON.parse(readFileSync(path, "utf8"));
const casesOf = (path: string) => (existsSync(path) ? read(path).cases : []);

const files = readdirSync(FROZEN).filter((name) => name.endsWith(".json"));
const known = new Set(files.flatMap((name) => casesOf(join(FROZEN, name)).map((one) => one.name)));
const current = read(join(import.meta.dirname, "verifier.json"));
const added = current.cases.filter(({ name }) => !known.has(name));
const path = join(FROZEN, `${current.version}.json`);
if (added.length > 0) writeFileSync(path, writeVectors({ ...current, cases: [...casesOf(path), ...added] }));
