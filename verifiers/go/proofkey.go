package verifier

// privateMembers are the members of private and symmetric keys (RFC 7518 section 6). A client that sends one of them
// does not keep its key secret.
var privateMembers = [...]string{"d", "p", "q", "dp", "dq", "qi", "oth", "k"}

// proofKey is the public key in a proof.
type proofKey struct {
	// canonical is the text whose SHA-256 is the thumbprint (RFC 7638 section 3).
	canonical string
	// open returns the function that verifies signatures; nil if the key is not a point of its curve.
	open func() func(input, signature []byte) bool
}

// readProofKey reads a public JWK for an algorithm. It returns nil unless the key is P-256, Ed25519, or RSA with 2,048 to
// 4,096 bits, is encoded canonically and has no private member.
func readProofKey(alg string, jwk map[string]any) *proofKey {
	for _, name := range privateMembers {
		if _, has := jwk[name]; has {
			return nil
		}
	}
	if named, has := jwk["alg"]; has && named != alg {
		return nil
	}
	text := func(name string) string { value, _ := jwk[name].(string); return value }
	name := alg
	if alg == "Ed25519" {
		name = "EdDSA"
	}
	public := readPublicKey(name, jwk)
	if public == nil {
		return nil
	}
	return &proofKey{canonicalOf(name, text), func() func(input, signature []byte) bool {
		switch public.fault() {
		case offCurve:
			return nil
		case smallOrder: // Anybody can sign for such a point, so that no signature proves anything.
			return func(_, _ []byte) bool { return false }
		}
		return public.verifier()
	}}
}

// canonicalOf returns the required members of a key in lexicographic order (RFC 7638 section 3).
func canonicalOf(alg string, text func(name string) string) string {
	switch alg {
	case "ES256":
		return `{"crv":"P-256","kty":"EC","x":"` + text("x") + `","y":"` + text("y") + `"}`
	case "RS256":
		return `{"e":"` + text("e") + `","kty":"RSA","n":"` + text("n") + `"}`
	}
	return `{"crv":"Ed25519","kty":"OKP","x":"` + text("x") + `"}`
}
