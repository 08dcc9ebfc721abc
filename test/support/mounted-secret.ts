import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Lays out a directory as Kubernetes mounts a Secret: each name is a link into `..data`, and the files have its default mode, 0644. */
export function mountedSecret(directory: string, files: Readonly<Record<string, string>>): string {
  const version = "..2026_11_26_00_00_00.1234567890";
  mkdirSync(join(directory, version));
  symlinkSync(version, join(directory, "..data"));
  for (const [name, content] of Object.entries(files)) {
    writeFileSync(join(directory, version, name), content, { mode: 0o644 });
    symlinkSync(join("..data", name), join(directory, name));
  }
  return directory;
}
