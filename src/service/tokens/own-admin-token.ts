/** The admin token that a service generates once, in its DATA_DIR, if no tokens are configured. */
import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { errorCode } from "../../platform/files/error-code.ts";
import { protectionFault } from "../../platform/files/protection.ts";
import { createFile } from "../../platform/files/write-atomically.ts";

/** The file of an admin token must not be used. The message contains the remedy and never the token. */
export class AdminTokenFault extends Error {
  override readonly name = "AdminTokenFault";
}

/** Returns the token in a file; generates it if there is none. @throws AdminTokenFault, and errors of the file system */
export async function ownAdminToken(path: string): Promise<string> {
  const text = await readToken(path).catch(async (error: unknown) => {
    if (errorCode(error) !== "ENOENT") throw error;
    await createFile(path, `${randomBytes(32).toString("base64url")}\n`);
    return readToken(path);
  });
  const token = text.trim();
  if (/^[A-Za-z0-9._~+/-]{32,}=*$/.test(token)) return token;
  throw new AdminTokenFault(`the file ${path} holds no token of at least 32 characters: remove it to have one made`);
}

async function readToken(path: string): Promise<string> {
  const fault = await protectionFault(path, { forbids: "read", mode: 0o600 });
  if (fault !== undefined) throw new AdminTokenFault(`the file ${path} ${fault}`);
  return readFile(path, "utf8");
}
