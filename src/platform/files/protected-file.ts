import { type Followed, loadFollowed } from "./follow.ts";
import { type Protection, readProtected } from "./protection.ts";

type Deps<Content, Fault extends Error> = {
  readonly path: string;
  readonly protection: Protection;
  /** @throws Fault */
  readonly parse: (text: string) => Content;
  /** The class of the errors that say why the file cannot be used. */
  readonly Fault: new (
    message: string,
  ) => Fault;
};

/** Reads a file that others must not change, and that can be followed. The messages of its faults begin with its path. @throws Fault */
export function loadProtected<Content, Fault extends Error>(
  deps: Deps<Content, Fault>,
): Promise<Followed<Content, Fault>> {
  const { path, protection, parse, Fault } = deps;
  const faultAt = (what: string) => new Fault(`${path}: ${what}`);
  return loadFollowed<Content, Fault>({
    path,
    async read(flag) {
      const read = await readProtected(path, protection, flag);
      if (!read.ok) throw faultAt(read.fault);
      return read.text;
    },
    parse(text) {
      try {
        return parse(text);
      } catch (error) {
        throw error instanceof Fault ? faultAt(error.message) : error;
      }
    },
    faultOf: (error) => (error instanceof Fault ? error : faultAt("cannot be used")),
  });
}
