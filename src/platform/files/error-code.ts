export const errorMessage = (error: unknown) => (error instanceof Error ? error.message : String(error));

/** Returns the code of a file system's error, such as `ENOENT`. */
export function errorCode(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "unknown";
}
