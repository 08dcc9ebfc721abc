/** The proofs have a short form, for every run of the tests, and a long one: `PROOF=long`. */
export const long = process.env.PROOF === "long";

/** How long to go on, ms. */
export const seconds = (short: number, longForm: number) => (long ? longForm : short) * 1000;
