package verifier

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"math/big"
)

const (
	minRSABits, maxRSABits = 2048, 4096
	// rsaExponent is the only accepted exponent; the second constant is its base64url form. Smaller exponents help
	// forgers if a verifier checks the padding carelessly, and not every runtime supports greater ones.
	rsaExponent, rsaExponentText = 65_537, "AQAB"
)

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
	switch alg {
	case "ES256":
		x, y := coordinate(jwk["x"]), coordinate(jwk["y"])
		if jwk["kty"] != "EC" || jwk["crv"] != "P-256" || x == nil || y == nil {
			return nil
		}
		canonical := `{"crv":"P-256","kty":"EC","x":"` + text("x") + `","y":"` + text("y") + `"}`
		return &proofKey{canonical, func() func(input, signature []byte) bool { return openEC(x, y) }}
	case "RS256":
		public := readRSA(text("n"), text("e"))
		if jwk["kty"] != "RSA" || public == nil {
			return nil
		}
		canonical := `{"e":"` + text("e") + `","kty":"RSA","n":"` + text("n") + `"}`
		return &proofKey{canonical, func() func(input, signature []byte) bool { return openRSA(public) }}
	}
	x := coordinate(jwk["x"])
	if jwk["kty"] != "OKP" || jwk["crv"] != "Ed25519" || x == nil {
		return nil
	}
	verifies := func(input, signature []byte) bool { return ed25519.Verify(x, input, signature) }
	canonical := `{"crv":"Ed25519","kty":"OKP","x":"` + text("x") + `"}`
	return &proofKey{canonical, func() func(input, signature []byte) bool { return verifies }}
}

func openEC(x, y []byte) func(input, signature []byte) bool {
	public := &ecdsa.PublicKey{Curve: elliptic.P256(), X: new(big.Int).SetBytes(x), Y: new(big.Int).SetBytes(y)}
	if !public.Curve.IsOnCurve(public.X, public.Y) {
		return nil
	}
	return func(input, signature []byte) bool {
		return len(signature) == signatureBytes && verifyES256(public, input, signature)
	}
}

func openRSA(public *rsa.PublicKey) func(input, signature []byte) bool {
	return func(input, signature []byte) bool {
		digest := sha256.Sum256(input)
		return rsa.VerifyPKCS1v15(public, crypto.SHA256, digest[:], signature) == nil
	}
}

// readRSA reads a modulus, which has no leading zero (Base64urlUInt, RFC 7518 section 2).
func readRSA(modulusText, exponentText string) *rsa.PublicKey {
	modulus, ok := decodeSegment(modulusText)
	if !ok || modulus == "" || modulus[0] == 0 || exponentText != rsaExponentText {
		return nil
	}
	n := new(big.Int).SetBytes([]byte(modulus))
	if bits := n.BitLen(); bits < minRSABits || bits > maxRSABits || n.Bit(0) == 0 {
		return nil
	}
	return &rsa.PublicKey{N: n, E: rsaExponent}
}
