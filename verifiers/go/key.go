package verifier

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/base64"
	"math/big"
	"sync/atomic"
)

// key is a key of the issuer's JWKS.
type key struct {
	kid, alg string
	// material contains the public members. Two keys with the same kid are the same key if their material is equal.
	material string
	// withdrawn is true if the issuer has revoked the key or stopped publishing it. Tokens signed with the key are then
	// not valid any more.
	withdrawn atomic.Bool
	verifies  func(input, signature []byte) bool
}

// importKey imports a JWK (RFC 7517). It returns nil if the use, type or curve is not that of a key for access tokens.
func importKey(value any) *key {
	jwk, _ := value.(map[string]any)
	kid, isText := jwk["kid"].(string)
	if use, has := jwk["use"]; !isText || has && use != "sig" {
		return nil
	}
	if operations, has := jwk["key_ops"]; has && !includes(operations, "verify") {
		return nil // RFC 7517 section 4.3
	}
	alg, hasAlg := jwk["alg"]
	is := func(kty, crv, name string) bool {
		return jwk["kty"] == kty && jwk["crv"] == crv && (!hasAlg || alg == nil || alg == name)
	}
	x, y := coordinate(jwk["x"]), coordinate(jwk["y"])
	switch {
	case is("EC", "P-256", "ES256") && x != nil && y != nil:
		public := &ecdsa.PublicKey{Curve: elliptic.P256(), X: new(big.Int).SetBytes(x), Y: new(big.Int).SetBytes(y)}
		if !public.Curve.IsOnCurve(public.X, public.Y) {
			return nil
		}
		verifies := func(input, signature []byte) bool { return verifyES256(public, input, signature) }
		return &key{kid: kid, alg: "ES256", material: "EC" + string(x) + string(y), verifies: verifies}
	case is("OKP", "Ed25519", "EdDSA") && x != nil:
		verifies := func(input, signature []byte) bool { return ed25519.Verify(x, input, signature) }
		return &key{kid: kid, alg: "EdDSA", material: "OKP" + string(x), verifies: verifies}
	}
	return nil
}

// verifyES256 verifies a signature r ‖ s (RFC 7518 section 3.4).
func verifyES256(public *ecdsa.PublicKey, input, signature []byte) bool {
	digest := sha256.Sum256(input)
	r, s := new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:])
	return ecdsa.Verify(public, digest[:], r, s)
}

// coordinate returns the 32 bytes of a coordinate, which have one encoding; nil for anything else.
func coordinate(value any) []byte {
	text, _ := value.(string)
	bytes, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(bytes) != 32 || len(text) != 43 {
		return nil
	}
	return bytes
}

func includes(list any, wanted string) bool {
	items, _ := list.([]any)
	for _, item := range items {
		if item == wanted {
			return true
		}
	}
	return false
}
