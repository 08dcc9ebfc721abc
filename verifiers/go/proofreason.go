package verifier

// The reasons why the proof of a bound token is refused. The token itself may be refused for a reason in Reasons. Respond 401.
const (
	// ProofAbsent: a bound token came without a proof. ProofAmbiguous: there is more than one.
	ProofAbsent    Reason = "proof_absent"
	ProofAmbiguous Reason = "proof_ambiguous"
	// ProofMalformed: the proof is not a JWS in compact form, is too long, has a forbidden member, or lacks a claim.
	ProofMalformed      Reason = "proof_malformed"
	ProofWrongType      Reason = "proof_wrong_type"
	ProofWrongAlgorithm Reason = "proof_wrong_algorithm"
	// ProofBadKey: the proof's key is private, of a size that is not accepted, or not on its curve.
	ProofBadKey Reason = "proof_bad_key"
	// ProofWrongMethod, ProofWrongURL, ProofWrongToken: the proof was made for another request or another access token.
	ProofWrongMethod Reason = "proof_wrong_method"
	ProofWrongURL    Reason = "proof_wrong_url"
	ProofWrongToken  Reason = "proof_wrong_token"
	// ProofStale: the proof was made too long ago, or in the future.
	ProofStale Reason = "proof_stale"
	// ProofNonce is a reason of the service only, because verifiers do not require nonces.
	ProofNonce    Reason = "proof_nonce"
	ProofForged   Reason = "proof_forged"
	ProofReplayed Reason = "proof_replayed"
	// ProofOtherKey: the token is bound to another key, or to none.
	ProofOtherKey Reason = "proof_other_key"
)

// ProofReasons lists all reasons why a proof is refused.
var ProofReasons = []Reason{
	ProofAbsent, ProofAmbiguous, ProofMalformed, ProofWrongType, ProofWrongAlgorithm, ProofBadKey, ProofWrongMethod,
	ProofWrongURL, ProofWrongToken, ProofStale, ProofNonce, ProofForged, ProofReplayed, ProofOtherKey,
}
