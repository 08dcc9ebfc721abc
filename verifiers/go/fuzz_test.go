package verifier

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"
)

type vectorFile struct {
	Options struct{ Issuer, Audience string }
	Keys    json.RawMessage
	Cases   []struct {
		Token, Verdict string
		NowMs          int64
		Keys, Feed     json.RawMessage
		Options        *struct{}
		Requests       []struct{ Method, URL, Proof string }
	}
}

func readVectorFile(t testing.TB) (file vectorFile) {
	t.Helper()
	text, err := os.ReadFile("../../test/vectors/verifier.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	return file
}

// FuzzParseObject tests that encoding/json accepts every accepted text, too, with the same value.
func FuzzParseObject(f *testing.F) {
	for _, text := range []string{
		`{}`, ` {"a":[1,-0.5e+3,"\u00e9\ud83d\ude00",null,true,{"b":{}}]} `, `{"a":1,"a":2}`, `{"a":"\ud800"}`, `{"a":1e999}`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		object, ok := parseObject(text)
		if !ok {
			return
		}
		var other map[string]any
		if err := json.Unmarshal([]byte(text), &other); err != nil {
			if strings.Contains(err.Error(), "cannot unmarshal number") {
				return // a number is out of range, which parseObject accepts as infinite
			}
			t.Fatalf("accepted, but %v", err)
		}
		if !reflect.DeepEqual(object, other) {
			t.Fatalf("%v, not %v", object, other)
		}
	})
}

// FuzzVerify tests that no text makes the verifier panic, and that accepted claims are always those that were signed.
func FuzzVerify(f *testing.F) {
	file := readVectorFile(f)
	v := offline(f, file)
	signed := map[string]bool{}
	for _, one := range file.Cases {
		f.Add(one.Token)
		if parts := strings.Split(one.Token, "."); len(parts) == 3 {
			signed[parts[0]+"."+parts[1]] = true
		}
	}
	f.Fuzz(func(t *testing.T, token string) {
		verdict := v.Verify(context.Background(), token)
		if end := strings.LastIndexByte(token, '.'); verdict.OK && !signed[token[:end]] {
			t.Fatalf("nobody signed %s", token)
		}
	})
}

func TestTimesOfTheFeed(t *testing.T) {
	var b batch
	text := `{"asOfTime":"2027-01-15T08:00:00.000500Z","revocations":[{"sessionId":"a"}]}`
	if err := json.Unmarshal([]byte(text), &b); err != nil {
		t.Fatal(err)
	}
	if ms := msOf(b.AsOfTime, 0); ms != 1_800_000_000_001 {
		t.Errorf("half a millisecond is rounded to %f", ms)
	}
	if ms := msOf(b.Revocations[0].ExpireTime, math.Inf(1)); !math.IsInf(ms, 1) {
		t.Errorf("no time is %f", ms)
	}
}
