package verifier_test

import (
	"encoding/json"
	"os"
	"reflect"
	"testing"

	"session-service.example/verifier"
	"session-service.example/verifier/internal/vectors"
)

func readVectors(t testing.TB) vectors.File {
	t.Helper()
	text, err := os.ReadFile("../../test/vectors/verifier.json")
	if err != nil {
		t.Fatal(err)
	}
	var file vectors.File
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	if file.Version != 2 {
		t.Fatalf("version %d of the vectors", file.Version)
	}
	return file
}

func TestVectors(t *testing.T) {
	file := readVectors(t)
	runner := vectors.NewRunner(file)
	defer runner.Close()
	seen := map[string]bool{}
	for _, one := range file.Cases {
		t.Run(one.Name, func(t *testing.T) {
			result, err := runner.Run(one)
			if err != nil {
				t.Fatal(err)
			}
			seen[result.Verdict] = true
			if result.Verdict != one.Verdict {
				t.Fatalf("%s, not %s", result.Verdict, one.Verdict)
			}
			if one.Claims != nil && !equalJSON(t, *one.Claims, result.Claims) {
				t.Fatalf("%s, not %s", result.Claims, *one.Claims)
			}
		})
	}
	for _, reason := range append(verifier.ProofReasons, verifier.Reasons...) {
		// ProofNonce is a reason of the service only, because verifiers do not require nonces.
		if !seen[string(reason)] && reason != verifier.ProofNonce {
			t.Errorf("no case is %s", reason)
		}
	}
}

func equalJSON(t *testing.T, one, other json.RawMessage) bool {
	var values [2]any
	for index, text := range []json.RawMessage{one, other} {
		if err := json.Unmarshal(text, &values[index]); err != nil {
			t.Fatal(err)
		}
	}
	return reflect.DeepEqual(values[0], values[1])
}
