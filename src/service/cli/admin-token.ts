/** Makes the entries of ADMIN_TOKENS_FILE. A token is printed once, or written to a file of its own, and stored nowhere else. */
import { readFileSync } from "node:fs";
import { Command, Option } from "commander";
import { errorCode } from "../../platform/files/error-code.ts";
import { SCOPES } from "../session/admin/access.ts";
import { AdminTokensFault, parseAdminEntries } from "../tokens/admin-entries.ts";
import { type Context, EXIT_CODES, usageError, withRefusals } from "./context.ts";
import { readText } from "./input.ts";

const HELP = `The token itself is printed once, or written to --token-file, and stored nowhere else; the entry holds its hash.
${EXIT_CODES}`;

export function addAdminTokenCommand(program: Command, context: Context): void {
  const adminToken = program
    .command("admin-token")
    .description("make credentials of the admin API: the entries of ADMIN_TOKENS_FILE")
    .addHelpText("after", `\n${HELP}`);
  const add = (command: Command) => {
    adminToken.addCommand(command.copyInheritedSettings(adminToken).addHelpText("after", `\n${HELP}`));
    return command
      .requiredOption(
        "--name <name>",
        "what the audit log calls the caller: 1 to 64 letters, digits or any of . _ @ : -",
      )
      .addOption(
        new Option("--scope <scope...>", "what the caller may do; may be repeated")
          .choices(SCOPES)
          .makeOptionMandatory(),
      )
      .option(
        "--file <path>",
        "add the entry to this file, made if it is not there; a running service takes it at once",
      );
  };
  add(new Command("create"))
    .description("make a random token, print it once, and print its entry")
    .option("--token-file <path>", "write the token alone to this new file (0600), instead of printing it")
    .action((options) => makeEntry(context, { kind: "random" }, options));
  add(new Command("hash"))
    .description("print the entry of a token that you have: it is read from standard input")
    .action((options) => makeEntry(context, { kind: "stdin" }, options));
  add(new Command("certificate"))
    .description("print the entry of a client certificate")
    .requiredOption("--certificate <name>", "the common name, a DNS name or a URI in the certificate")
    .action((options) => makeEntry(context, { kind: "certificate", name: options.certificate }, options));
}

type AdminTokenOptions = {
  readonly name: string;
  readonly scope: readonly string[];
  readonly file?: string;
  readonly tokenFile?: string;
};

/** The credential to make an entry for: a new token, a given one, or a certificate. */
type MakeCredential = { readonly kind: "random" | "stdin" } | { readonly kind: "certificate"; readonly name: string };

function makeEntry(context: Context, make: MakeCredential, options: AdminTokenOptions): Promise<void> {
  const { name, scope, file, tokenFile } = options;
  return withRefusals([AdminTokensFault], async () => {
    const { token, ...credential } = await makeCredential(make);
    const entry = { name, ...credential, scopes: scope };
    checkEntry(entry);
    // The token comes first: an entry whose token was lost is useless, and a token without an entry is not accepted.
    if (token !== undefined && tokenFile !== undefined) await writeToken(tokenFile, token);
    if (file !== undefined) await addEntry(file, entry);
    if (token !== undefined && tokenFile === undefined) context.print(`token (printed once): ${token}`);
    context.print(file === undefined ? `entry: ${JSON.stringify(entry)}` : `added ${name} to ${file}`);
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

type NewCredential = { readonly token?: string } & ({ readonly hash: string } | { readonly certificate: string });

async function makeCredential(make: MakeCredential): Promise<NewCredential> {
  const { hash, randomBytes } = await import("node:crypto");
  switch (make.kind) {
    case "random": {
      const token = randomBytes(32).toString("base64url");
      return { token, hash: hash("sha256", token) };
    }
    case "stdin": {
      const token = readText("-").trim();
      if (/^[A-Za-z0-9._~+/-]{32,}=*$/.test(token)) return { hash: hash("sha256", token) };
      throw new AdminTokensFault("standard input: a token has at least 32 letters, digits or any of . _ ~ + / -");
    }
    case "certificate":
      return { certificate: make.name };
  }
}

/** Writes a token to a new file. @throws AdminTokensFault if the file exists, or cannot be written */
async function writeToken(path: string, token: string): Promise<void> {
  const { createFile } = await import("../../platform/files/write-atomically.ts");
  const isNew = await createFile(path, `${token}\n`).catch((error: unknown) => {
    throw new AdminTokensFault(`${path}: cannot be written (${errorCode(error)})`);
  });
  if (!isNew) throw new AdminTokensFault(`${path}: exists already, and is not replaced`);
}

async function addEntry(path: string, entry: object): Promise<void> {
  const { createFile, replaceFile } = await import("../../platform/files/write-atomically.ts");
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
