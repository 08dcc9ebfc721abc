/** The tests in test/proofs have a short form, which runs with all tests, and a long one with `PROOF=long`. */
export const long = process.env.PROOF === "long";

/** Returns how long to continue, in ms. */
export const seconds = (short: number, longForm: number) => (long ? longForm : short) * 1000;
