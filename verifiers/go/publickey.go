package verifier

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/base64"
	"encoding/hex"
	"math/big"
)

const (
	minRSABits, maxRSABits = 2048, 4096
	// rsaExponent is the only accepted exponent; the second constant is its base64url form. Smaller exponents help
	// forgers if a verifier checks the padding carelessly, and not every runtime supports greater ones.
	rsaExponent, rsaExponentText = 65_537, "AQAB"
)

// keyFault tells why a key of the right form is refused.
type keyFault string

const (
	// offCurve: the key is not a point of P-256 (RFC 7518 section 6.2.1).
	offCurve keyFault = "off_curve"
	// smallOrder: the key is a point of Ed25519 for which anybody can sign.
	smallOrder keyFault = "small_order"
)

// publicKey is a public key in canonical encoding. One of its fields is set.
type publicKey struct {
	ec  *ecdsa.PublicKey
	ed  []byte
	rsa *rsa.PublicKey
}

// readPublicKey reads the members of a public JWK (RFC 7517) of P-256, Ed25519 or RSA (2,048 to 4,096 bits) for ES256,
// EdDSA or RS256. It returns nil for any other value. The method fault checks the point.
func readPublicKey(alg string, jwk map[string]any) *publicKey {
	text := func(name string) string { value, _ := jwk[name].(string); return value }
	if alg == "RS256" {
		if public := readRSA(text("n"), text("e")); public != nil && jwk["kty"] == "RSA" {
			return &publicKey{rsa: public}
		}
		return nil
	}
	x, y := coordinate(jwk["x"]), coordinate(jwk["y"])
	switch {
	case x == nil:
		return nil
	case alg == "EdDSA" && jwk["kty"] == "OKP" && jwk["crv"] == "Ed25519":
		return &publicKey{ed: x}
	case alg == "ES256" && jwk["kty"] == "EC" && jwk["crv"] == "P-256" && y != nil:
		point := &ecdsa.PublicKey{Curve: elliptic.P256(), X: new(big.Int).SetBytes(x), Y: new(big.Int).SetBytes(y)}
		return &publicKey{ec: point}
	}
	return nil
}

// fault returns why the key must not be used; "" if it may be.
func (k *publicKey) fault() keyFault {
	if k.ec != nil && !k.ec.Curve.IsOnCurve(k.ec.X, k.ec.Y) {
		return offCurve
	}
	if k.ed != nil && isOfSmallOrder(k.ed) {
		return smallOrder
	}
	return ""
}

// verifier returns the function that verifies signatures of the key.
func (k *publicKey) verifier() func(input, signature []byte) bool {
	switch {
	case k.ec != nil:
		return func(input, signature []byte) bool { return verifyES256(k.ec, input, signature) }
	case k.ed != nil:
		return func(input, signature []byte) bool { return verifyEdDSA(k.ed, input, signature) }
	}
	return func(input, signature []byte) bool { return verifyRS256(k.rsa, input, signature) }
}

// material returns the public members as a text. Two keys are equal if their material is equal.
func (k *publicKey) material() string {
	switch {
	case k.ec != nil:
		return "EC" + k.ec.X.Text(16) + "," + k.ec.Y.Text(16)
	case k.ed != nil:
		return "OKP" + string(k.ed)
	}
	return "RSA" + k.rsa.N.Text(16)
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

// coordinate returns the 32 bytes of a coordinate, which have one encoding; nil for anything else.
func coordinate(value any) []byte {
	text, _ := value.(string)
	bytes, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(bytes) != 32 || len(text) != 43 {
		return nil
	}
	return bytes
}

// smallOrderY are the y coordinates of the eight points of small order of Ed25519, in little-endian form, also those that are not
// reduced.
var smallOrderY = map[string]bool{
	decodeHex("0000000000000000000000000000000000000000000000000000000000000000"): true,
	decodeHex("0100000000000000000000000000000000000000000000000000000000000000"): true,
	decodeHex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"): true,
	decodeHex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"): true,
	decodeHex("ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"): true,
	decodeHex("edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"): true,
	decodeHex("eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"): true,
}

func decodeHex(text string) string {
	bytes, _ := hex.DecodeString(text)
	return string(bytes)
}

// isOfSmallOrder returns whether a point of Ed25519 has the order 1, 2, 4 or 8. Its last bit is the sign of x (RFC 8032
// section 5.1.2).
func isOfSmallOrder(point []byte) bool {
	y := append([]byte(nil), point...)
	y[31] &= 127
	return smallOrderY[string(y)]
}
