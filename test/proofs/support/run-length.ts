/** The tests in test/proofs have a short form, which runs with all tests, and a long one with `PROOF=long`. */
export const long = process.env.PROOF === "long";

/** Returns the duration of the present form, short or long, in ms. The parameters are the durations of the two forms, in seconds. */
export const seconds = (short: number, longForm: number) => (long ? longForm : short) * 1000;
