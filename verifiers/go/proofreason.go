package verifier

// Why the proof of a bound token is refused, beside the reasons of its token: respond 401.
const (
	// ProofAbsent: a bound token came without a proof. ProofAmbiguous: there is more than one.
	ProofAbsent    Reason = "proof_absent"
	ProofAmbiguous Reason = "proof_ambiguous"
	// ProofMalformed: no JWS of the form, too long, with members that are refused, or without a claim that it needs.
	ProofMalformed      Reason = "proof_malformed"
	ProofWrongType      Reason = "proof_wrong_type"
	ProofWrongAlgorithm Reason = "proof_wrong_algorithm"
	// ProofBadKey: its key is private, of a size that is not accepted, or not on its curve.
	ProofBadKey Reason = "proof_bad_key"
	// ProofWrongMethod, ProofWrongURL, ProofWrongToken: it was made for another request, or for another access token.
	ProofWrongMethod Reason = "proof_wrong_method"
	ProofWrongURL    Reason = "proof_wrong_url"
	ProofWrongToken  Reason = "proof_wrong_token"
	// ProofStale: it was made too long ago, or in the future.
	ProofStale Reason = "proof_stale"
	// ProofNonce occurs only at the service: a verifier asks for no nonces.
	ProofNonce    Reason = "proof_nonce"
	ProofForged   Reason = "proof_forged"
	ProofReplayed Reason = "proof_replayed"
	// ProofOtherKey: the token is bound to another key, or to none.
	ProofOtherKey Reason = "proof_other_key"
)

// ProofReasons is the closed list.
var ProofReasons = []Reason{
	ProofAbsent, ProofAmbiguous, ProofMalformed, ProofWrongType, ProofWrongAlgorithm, ProofBadKey, ProofWrongMethod,
	ProofWrongURL, ProofWrongToken, ProofStale, ProofNonce, ProofForged, ProofReplayed, ProofOtherKey,
}
