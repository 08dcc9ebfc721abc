package verifier

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
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

// tokenAlgorithms are the accepted algorithms of access tokens. They are all asymmetric; "none" is not accepted.
var tokenAlgorithms = [...]string{"ES256", "EdDSA", "RS256"}

// importKey imports a JWK (RFC 7517). It returns nil if the use, type or members are not those of a key for access tokens.
func importKey(value any) *key {
	jwk, _ := value.(map[string]any)
	kid, isText := jwk["kid"].(string)
	if use, has := jwk["use"]; !isText || has && use != "sig" {
		return nil
	}
	if operations, has := jwk["key_ops"]; has && !includes(operations, "verify") {
		return nil // RFC 7517 section 4.3
	}
	// A member of this service: the tokens that the key signs. Keys of security events sign no access tokens.
	if types, has := jwk["token_types"]; has && !includes(types, "at+jwt") {
		return nil
	}
	for _, name := range tokenAlgorithms {
		if alg := jwk["alg"]; alg != nil && alg != name {
			continue
		}
		if public := readPublicKey(name, jwk); public != nil {
			if public.fault() != "" {
				return nil
			}
			return &key{kid: kid, alg: name, material: public.material(), verifies: public.verifier()}
		}
	}
	return nil
}

// verifyES256 verifies a signature r ‖ s (RFC 7518 section 3.4).
func verifyES256(public *ecdsa.PublicKey, input, signature []byte) bool {
	if len(signature) != 64 {
		return false
	}
	digest := sha256.Sum256(input)
	r, s := new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:])
	return ecdsa.Verify(public, digest[:], r, s)
}

func verifyEdDSA(public ed25519.PublicKey, input, signature []byte) bool {
	return ed25519.Verify(public, input, signature)
}

func verifyRS256(public *rsa.PublicKey, input, signature []byte) bool {
	digest := sha256.Sum256(input)
	return rsa.VerifyPKCS1v15(public, crypto.SHA256, digest[:], signature) == nil
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
