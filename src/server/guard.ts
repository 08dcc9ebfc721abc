/** Decides which paths are only for users who are signed in. */
import { isDecodable, pathReadings, withoutSlashAtEnd } from "./paths.ts";

export type GuardOptions = {
  /**
   * Returns whether a path is for everybody. All other paths are only for users who are signed in. It is called with every reading of the
   * path: as sent, decoded, without `..`, in lower case, without a slash or a suffix such as `.html` at its end. It has to return true for
   * all of them. Default: no path is, except the login page.
   */
  readonly isPublic?: (path: string) => boolean;
  /**
   * Returns whether a path is only for users who are signed in, although `isPublic` includes it. It is called with every reading of the
   * path, which is protected if it returns true for one of them. Default: no path is.
   */
  readonly isProtected?: (path: string) => boolean;
};

type Access =
  | { readonly access: "public" }
  /** `reading` is the reading of the path that is not public. */
  | { readonly access: "protected"; readonly reading: string }
  /** The path cannot be decoded, or has more readings than the address of any page. */
  | { readonly access: "unreadable" };

/**
 * Creates the function that decides about the paths of requests.
 * @param login the path of the login page, which is always public; undefined if there is none
 * @throws TypeError if `isProtected` is given without `isPublic`, as before version 0.3: everything is protected, so it has no effect
 */
export function createGuard(options: GuardOptions, login?: string) {
  const { isPublic, isProtected } = options;
  if (isProtected && !isPublic)
    throw new TypeError("isProtected needs isPublic: every path is protected that isPublic does not name");
  const isOpen = (path: string) =>
    (login !== undefined && isLogin(path, login)) || (isPublic?.(path) && !isProtected?.(path));
  /** @param routed the path by which the framework looks for the page, if it says so */
  return (sent: string, routed = sent): Access => {
    if (!isDecodable(sent)) return { access: "unreadable" };
    for (const path of new Set([sent, routed])) {
      const readings = pathReadings(path);
      if (readings === undefined) return { access: "unreadable" };
      const reading = readings.find((one) => !isOpen(one));
      if (reading !== undefined) return { access: "protected", reading };
    }
    return { access: "public" };
  };
}

export const isLogin = (path: string, login: string): boolean => {
  const comparable = (one: string) => withoutSlashAtEnd(one).toLowerCase();
  return comparable(path) === comparable(login);
};
