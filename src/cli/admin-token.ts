#!/usr/bin/env node
/** `npm run admin-token -- …`: makes the entries of ADMIN_TOKENS_FILE. The token itself is printed once and stored nowhere. */
import { createHash, randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { errorCode } from "../files/error-code.ts";
import { createFile, replaceFile } from "../files/place.ts";
import { SCOPES } from "../session/admin-access.ts";
import { AdminTokensFault, parseAdminEntries } from "../tokens/admin-entries.ts";
import { readOptions, runCommand, UsageError } from "./command.ts";

const USAGE = `usage: npm run admin-token -- <command> --name <name> --scope <scope> [--scope <scope> …] [options]

  create          make a random token, print it once, and print its entry for ADMIN_TOKENS_FILE
  hash            print the entry of a token that you have: it is read from standard input
  certificate     print the entry of a client certificate; --certificate is the common name, DNS name or URI in it

  --name <name>   what the audit log calls the caller: 1 to 64 letters, digits or any of . _ @ : -
  --scope <scope> ${SCOPES.join(", ")}
  --file <path>   add the entry to this file, which is made if it is not there; a running service takes it at once

Exit codes: 0 done, 1 refused or failed, 2 wrong usage.`;

const OPTIONS = {
  name: { type: "string" },
  scope: { type: "string", multiple: true },
  certificate: { type: "string" },
  file: { type: "string" },
  help: { type: "boolean", short: "h" },
} as const;

async function run(args: string[]): Promise<string> {
  const { positionals, values } = readOptions(args, OPTIONS);
  if (values.help || positionals.length === 0) return USAGE;
  const [command, ...rest] = positionals;
  if (rest.length > 0) throw new UsageError("too many operands");
  if (values.name === undefined || values.scope === undefined) throw new UsageError("--name and --scope are needed");
  const { token, ...credential } = makeCredential(command ?? "", values.certificate);
  const entry = { name: values.name, ...credential, scopes: values.scope };
  parseAdminEntries(JSON.stringify({ admins: [entry] })); // whatever the service would refuse
  const lines = token === undefined ? [] : [`token (printed once): ${token}`];
  if (values.file === undefined) return [...lines, `entry: ${JSON.stringify(entry)}`].join("\n");
  await addEntry(values.file, entry);
  return [...lines, `added ${entry.name} to ${values.file}`].join("\n");
}

type Credential = { readonly token?: string } & ({ readonly hash: string } | { readonly certificate: string });

function makeCredential(command: string, certificate: string | undefined): Credential {
  if ((command === "certificate") !== (certificate !== undefined)) {
    throw new UsageError("the command certificate, and no other, takes --certificate");
  }
  switch (command) {
    case "create": {
      const token = randomBytes(32).toString("base64url");
      return { token, hash: hashOf(token) };
    }
    case "hash": {
      const token = readFileSync(0, "utf8").trim();
      if (/^[A-Za-z0-9._~+/-]{32,}=*$/.test(token)) return { hash: hashOf(token) };
      throw new AdminTokensFault("standard input: a token has at least 32 letters, digits or any of . _ ~ + / -");
    }
    case "certificate":
      return { certificate: certificate ?? "" };
    default:
      throw new UsageError(`there is no command ${command}`);
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

await runCommand(run, USAGE, [AdminTokensFault]);
