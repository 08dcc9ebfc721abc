/**
 * Publishes the packages of `dist/release`: `node deploy/release/publish.ts [<option of npm publish> …]`. It imports nothing of this tree or
 * of others, because it runs with the right to publish. A second run continues one that failed.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";

/** Returns the names of the packed files in the order of SHA256SUMS. @throws Error if the bytes of a file are others */
function packedFiles(directory: string): string[] {
  const lines = readFileSync(join(directory, "SHA256SUMS"), "utf8").trim().split("\n");
  return lines
    .map((line) => {
      const [sum = "", file = ""] = line.split("  ");
      const found = createHash("sha256")
        .update(readFileSync(join(directory, file)))
        .digest("hex");
      if (found !== sum) throw new Error(`${file} is not the file of SHA256SUMS`);
      return file;
    })
    .filter((file) => file.endsWith(".tgz"));
}

/** @param options further options of `npm publish`, such as `--dry-run` */
export function publishFiles(directory: string, options: readonly string[]): void {
  const npm = (...args: string[]) =>
    execFileSync("npm", args, { cwd: directory, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  const isPublished = (id: string) => {
    try {
      return npm("view", id, "version").trim() !== "";
    } catch {
      return false; // If the registry does not respond, publishing fails as well, with npm's explanation.
    }
  };
  for (const file of packedFiles(directory)) {
    const manifest = execFileSync("tar", ["xzOf", file, "package/package.json"], { cwd: directory, encoding: "utf8" });
    const { name, version } = JSON.parse(manifest) as { readonly name: string; readonly version: string };
    const id = `${name}@${version}`;
    const isNeeded = options.includes("--dry-run") || !isPublished(id);
    if (isNeeded) npm("publish", `./${file}`, "--access", "public", ...options);
    const done = options.includes("--dry-run") ? "can be published" : "published";
    console.log(`${id}: ${isNeeded ? done : "was published before"}`);
  }
}

if (import.meta.main) publishFiles(join(import.meta.dirname, "../../dist/release"), process.argv.slice(2));
