/** Makes the entries of ADMIN_TOKENS_FILE. A token is printed once and stored nowhere. */
import { createHash, randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { errorCode } from "../../platform/files/error-code.ts";
import { createFile, replaceFile } from "../../platform/files/place.ts";
import { AdminTokensFault, parseAdminEntries } from "../../tokens/admin-entries.ts";
import { refusing, usageError } from "../exit.ts";

export type AdminTokenOptions = { readonly name: string; readonly scope: readonly string[]; readonly file?: string };

/** The credential to make an entry for: a new token, a given one, or a certificate. */
export type MakeCredential =
  | { readonly kind: "random" | "stdin" }
  | { readonly kind: "certificate"; readonly name: string };

/** @returns the text to print */
export function runAdminToken(make: MakeCredential, { name, scope, file }: AdminTokenOptions): Promise<string> {
  return refusing([AdminTokensFault], async () => {
    const { token, ...credential } = makeCredential(make);
    const entry = { name, ...credential, scopes: scope };
    checkEntry(entry);
    const lines = token === undefined ? [] : [`token (printed once): ${token}`];
    if (file === undefined) return [...lines, `entry: ${JSON.stringify(entry)}`].join("\n");
    await addEntry(file, entry);
    return [...lines, `added ${name} to ${file}`].join("\n");
  });
}

/** Checks that the service would accept the entry when it reads ADMIN_TOKENS_FILE. */
function checkEntry(entry: object): void {
  try {
    parseAdminEntries(JSON.stringify({ admins: [entry] }));
  } catch (error) {
    if (!(error instanceof AdminTokensFault)) throw error;
    throw usageError(error.message.replace(/^admins\[0\]\./, "--"));
  }
}

type Credential = { readonly token?: string } & ({ readonly hash: string } | { readonly certificate: string });

function makeCredential(make: MakeCredential): Credential {
  switch (make.kind) {
    case "random": {
      const token = randomBytes(32).toString("base64url");
      return { token, hash: hashOf(token) };
    }
    case "stdin": {
      const token = readFileSync(0, "utf8").trim();
      if (/^[A-Za-z0-9._~+/-]{32,}=*$/.test(token)) return { hash: hashOf(token) };
      throw new AdminTokensFault("standard input: a token has at least 32 letters, digits or any of . _ ~ + / -");
    }
    case "certificate":
      return { certificate: make.name };
  }
}

const hashOf = (token: string) => createHash("sha256").update(token).digest("hex");

async function addEntry(path: string, entry: object): Promise<void> {
  const text = (admins: readonly unknown[]) => `${JSON.stringify({ admins }, null, 2)}\n`;
  try {
    if (await createFile(path, text([entry]))) return;
    const before = readFileSync(path, "utf8");
    parseAdminEntries(before);
    const changed = text([...JSON.parse(before).admins, entry]);
    parseAdminEntries(changed);
    await replaceFile(path, changed);
  } catch (error) {
    const fault = error instanceof AdminTokensFault ? error.message : `cannot be changed (${errorCode(error)})`;
    throw new AdminTokensFault(`${path}: ${fault}`);
  }
}
