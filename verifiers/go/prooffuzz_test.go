package verifier

import (
	"strings"
	"testing"
)

// FuzzVerifyProof tests that no text makes the verifier panic, that accepted content was signed, and that every refusal
// has a reason of the list.
func FuzzVerifyProof(f *testing.F) {
	file := readVectorFile(f)
	token, _ := boundCases(f, file)
	signed := map[string]bool{}
	nowMs := float64(file.Cases[0].NowMs)
	for _, one := range file.Cases {
		for _, request := range one.Requests {
			f.Add(request.Proof)
			if end := strings.LastIndexByte(request.Proof, '.'); end > 0 {
				signed[request.Proof[:end]] = true
			}
		}
	}
	isListed := map[Reason]bool{}
	for _, reason := range ProofReasons {
		isListed[reason] = true
	}
	f.Fuzz(func(t *testing.T, text string) {
		_, reason := verifyProof(ProvingRequest{"POST", provenURL, text}, token, nowMs)
		if reason != "" && !isListed[reason] {
			t.Fatalf("%q is no reason", reason)
		}
		if reason == "" && !signed[text[:strings.LastIndexByte(text, '.')]] {
			t.Fatalf("nobody signed %s", text)
		}
	})
}

// FuzzProofURL tests that every result is a URL without query and fragment, in printable ASCII.
func FuzzProofURL(f *testing.F) {
	for _, one := range readVectorFile(f).Cases {
		for _, request := range one.Requests {
			f.Add(request.URL)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		url, ok := proofURL(text)
		if !ok {
			return
		}
		path := url[strings.IndexByte(url[8:], '/')+8:]
		if _, isURL := proofURL(url); !isURL || strings.ContainsAny(url, "?#\\") || strings.Contains(path, "/../") {
			t.Fatal(url)
		}
		for _, c := range []byte(url) {
			if c <= ' ' || c > '~' {
				t.Fatalf("%q", url)
			}
		}
	})
}
