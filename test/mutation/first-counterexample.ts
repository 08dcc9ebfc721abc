/** A mutant is noticed by the first counterexample. Looking for a smaller one takes longer than finding it. */
import fc from "fast-check";

fc.configureGlobal({ endOnFailure: true });
