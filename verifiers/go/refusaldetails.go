package verifier

import (
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxDetail is the greatest length of a text in a description, in code points. A longer one ends with an ellipsis.
const maxDetail = 200

// requiredClaims are the claims that every access token has, beside `iss` and `aud` (RFC 9068 section 2.2).
var requiredClaims = []any{"client_id", "exp", "iat", "jti", "sid", "sub"}

// detail is a value that decides about a token, under the name of a claim or a header member. nil means that it is absent.
type detail struct {
	name               string
	expected, received any
}

// describe returns the values that decide about a reason; none for a reason that no value of the token explains. They
// contain neither the token nor its signature.
func (v *Verifier) describe(reason Reason, token string, request ProvingRequest) (expected, received map[string]string) {
	header, claims := readParts(token)
	details := append(v.describeToken(reason, header, claims), describeProof(reason, request, v.settings.wallMs())...)
	expected, received = map[string]string{}, map[string]string{}
	for _, each := range details {
		expected[each.name], received[each.name] = detailText(each.expected), detailText(each.received)
	}
	return expected, received
}

func (v *Verifier) describeToken(reason Reason, header, claims map[string]any) []detail {
	key, issuer := detail{"kid", listOf(v.keys.kids()), present(header, "kid")}, detail{"iss", v.settings.Issuer, present(claims, "iss")}
	seconds := math.Floor(v.settings.wallMs() / 1000)
	switch reason {
	case Malformed: // by the names of its members: a token of another kind of issuer has other ones
		return []detail{
			{"header", []any{"alg", "kid", "typ"}, namesOf(header)},
			{"claims", requiredClaims, namesOf(claims)},
		}
	case WrongType:
		return []detail{{"typ", "at+jwt", present(header, "typ")}}
	case WrongAlgorithm:
		return []detail{{"alg", v.algorithmOf(present(header, "kid")), present(header, "alg")}}
	case RevokedKey:
		return []detail{key}
	case UnknownKey, Forged:
		return []detail{key, issuer}
	case WrongIssuer:
		return []detail{issuer}
	case WrongAudience:
		return []detail{{"aud", listOf(v.audiences()), present(claims, "aud")}}
	case NotBearer:
		return []detail{{"cnf", nil, present(claims, "cnf")}}
	case NotDeviceBound:
		return []detail{{"device_bound", true, present(claims, "device_bound")}}
	case NotYetValid:
		return []detail{{"nbf", fmt.Sprintf("<= %.0f", seconds), present(claims, "nbf")}}
	case Expired:
		return []detail{{"exp", fmt.Sprintf("> %.0f", seconds), present(claims, "exp")}}
	}
	return nil
}

func describeProof(reason Reason, request ProvingRequest, nowMs float64) []detail {
	_, claims := readParts(request.Proof)
	switch reason {
	case ProofWrongMethod:
		return []detail{{"htm", request.Method, present(claims, "htm")}}
	case ProofWrongURL:
		var expected any
		if url, ok := proofURL(request.URL); ok {
			expected = url
		}
		received := present(claims, "htu")
		// The query is no part of `htu` (RFC 9449 section 4.2), and may contain a secret.
		if text, isText := received.(string); isText {
			if end := strings.IndexAny(text, "?#"); end >= 0 {
				text = text[:end]
			}
			received = text
		}
		return []detail{{"htu", expected, received}}
	case ProofStale:
		expected := fmt.Sprintf("%.0f +- %d", math.Floor(nowMs/1000), proofToleranceMs/1000)
		return []detail{{"iat", expected, present(claims, "iat")}}
	}
	return nil
}

func (v *Verifier) audiences() []string {
	audiences := make([]string, 0, len(v.settings.audiences))
	for audience := range v.settings.audiences {
		audiences = append(audiences, audience)
	}
	sort.Strings(audiences)
	return audiences
}

// algorithmOf returns the algorithm of a key, or all that are accepted if the key is unknown.
func (v *Verifier) algorithmOf(kid any) any {
	text, _ := kid.(string)
	if found, _ := v.keys.find(text); found != nil {
		return found.alg
	}
	return listOf(tokenAlgorithms[:])
}

// readParts reads a token that was refused. A part is nil if it cannot be decoded.
func readParts(token string) (header, claims map[string]any) {
	dot, end := strings.IndexByte(token, '.'), strings.LastIndexByte(token, '.')
	if len(token) > maxLength || dot < 0 {
		return nil, nil
	}
	header = readPart(token[:dot])
	if dot < end {
		claims = readPart(token[dot+1 : end])
	}
	return header, claims
}

func readPart(segment string) map[string]any {
	text, ok := decodeSegment(segment)
	if !ok || !utf8.ValidString(text) {
		return nil
	}
	if members, ok := parseObject(text); ok {
		return members
	}
	return nil
}

// otherType stands for a value that a description does not show.
type otherType struct{}

// present returns a member, which is not nil even if its value is null.
func present(members map[string]any, name string) any {
	value, has := members[name]
	if has && value == nil {
		return otherType{}
	}
	return value
}

func namesOf(members map[string]any) any {
	if members == nil {
		return "not readable"
	}
	names := make([]string, 0, len(members))
	for name := range members {
		names = append(names, name)
	}
	sort.Strings(names)
	return listOf(names)
}

func listOf(texts []string) []any {
	list := make([]any, len(texts))
	for index, text := range texts {
		list[index] = text
	}
	return list
}

// detailText returns a value as a text that is safe in a log. The verifiers in other languages write it in the same way.
func detailText(value any) string {
	switch value := value.(type) {
	case nil:
		return "absent"
	case bool:
		return strconv.FormatBool(value)
	case float64:
		if whole := math.Floor(value); math.Abs(whole) < 1<<53 {
			return strconv.FormatInt(int64(whole), 10)
		}
	case string:
		return safeText(value)
	case []any:
		if texts, ok := audiencesOf(value); ok {
			return safeText(strings.Join(texts, ", "))
		}
	}
	return "of another type"
}

// safeText shortens a text, and removes control and format characters, such as line breaks and direction marks, which
// could forge lines of a log.
func safeText(text string) string {
	var safe strings.Builder
	length := 0
	for _, r := range text {
		if unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) {
			continue
		}
		if length++; length > maxDetail {
			safe.WriteRune('…')
			break
		}
		safe.WriteRune(r)
	}
	if length == 0 {
		return "empty"
	}
	return safe.String()
}
